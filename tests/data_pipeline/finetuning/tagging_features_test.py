"""Tagged sentences as inputs: first pieces have the tags, whatever the kind of vocabulary."""

import numpy as np
import pytest

from data_pipeline.errors import UserError
from data_pipeline.finetuning.batches import Features, finetuning_dataset
from data_pipeline.finetuning.tagging import TaggedExample
from data_pipeline.finetuning.tagging_features import encode_tagged
from data_pipeline.tokenizers.sentencepiece import WORD_MARK, SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

LABELS = ("O", "B-X", "I-X")


def sentence(words, tags=None, line=1):
    words = tuple(words.split(" "))
    return TaggedExample(str(line), words, tags and tuple(tags.split(" ")), "f.conll", line)


@pytest.fixture(params=["sentencepiece", "sentencepiece_cased", "wordpiece", "wordpiece_cased"])
def any_tokenizer(request, tokenizer, wordpiece):
    """A tokenizer of each kind."""
    kind, _, cased = request.param.partition("_")
    if not cased:
        return tokenizer if kind == "sentencepiece" else wordpiece
    made = SentencePieceTokenizer if kind == "sentencepiece" else WordPieceTokenizer
    return made((tokenizer if kind == "sentencepiece" else wordpiece).vocab_file, lower=False)


EXAMPLES = [
    sentence("The unbelievable Traceback , 2010, is", "O B-X I-X O O B-X"),
    sentence("\u200b \u00c9t\u00e9 \ufe0f\u0301", "B-X I-X O", line=8),
    sentence("\u4f60 \u597d , world", "B-X I-X O O", line=12),
]


def test_first_pieces_have_the_tags(any_tokenizer):
    """Word by word, against a loop over the plain tokenizer."""
    encoded = encode_tagged(EXAMPLES, any_tokenizer, 64, LABELS, True)
    assert encoded.note == "" and len(encoded) == 3
    rows = np.array([2, 0, 1])
    batch = encoded.inputs(rows, 40)
    for row, number in enumerate(rows):
        ids, tags = [any_tokenizer.cls_id], [None]
        for word, tag in zip(EXAMPLES[number].words, EXAMPLES[number].tags):
            pieces = any_tokenizer.encode(word) or [any_tokenizer.unk_id]
            ids += pieces
            tags += [LABELS.index(tag)] + [None] * (len(pieces) - 1)
        ids.append(any_tokenizer.sep_id)
        padding = 40 - len(ids)
        tags += [None] * (1 + padding)
        assert batch["input_word_ids"][row].tolist() == ids + [0] * padding
        assert batch["input_mask"][row].tolist() == [1] * len(ids) + [0] * padding
        weights = [0.0 if tag is None else 1.0 for tag in tags]
        assert batch["token_weights"][row].tolist() == weights
        assert batch["token_label_ids"][row].tolist() == [tag or 0 for tag in tags]
        assert encoded.places[encoded.rows == number].tolist() == np.flatnonzero(weights).tolist()
    assert not batch["input_type_ids"].any()
    assert batch["token_label_ids"].dtype == np.int32
    assert batch["token_weights"].dtype == np.float32


def test_words_are_words(tokenizer, wordpiece):
    """Each begins with SentencePiece's mark, punctuation too; a Chinese character is one piece."""
    encoded = encode_tagged([sentence("return a , of")], tokenizer, 64, LABELS, False)
    first = tokenizer.ids_to_pieces(encoded.pieces.ids[encoded.places])
    assert len(first) == 4 and all(piece.startswith(WORD_MARK) for piece in first)
    encoded = encode_tagged([sentence("\u4f60 \u597d")], wordpiece, 64, LABELS, False)
    assert encoded.pieces.lengths.tolist() == [4] and encoded.places.tolist() == [1, 2]


def test_words_without_tags(tokenizer):
    encoded = encode_tagged([sentence("a b")], tokenizer, 16, LABELS, False)
    assert encoded.tag_ids is None
    assert set(encoded.inputs(np.array([0]), 16)) == {
        "input_word_ids",
        "input_mask",
        "input_type_ids",
    }


def test_long_sentences_are_cut(wordpiece):
    long = sentence("\u4f60 \u597d \u4f60 \u597d", "O B-X I-X O")
    examples = [long, sentence("\u4f60", "B-X", line=9), long]
    encoded = encode_tagged(examples, wordpiece, 5, LABELS, True)
    assert encoded.pieces.lengths.tolist() == [5, 3, 5]
    assert encoded.rows.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert encoded.places.tolist() == [1, 2, 3, 1, 1, 2, 3]
    assert encoded.tag_ids.tolist() == [0, 1, 2, 1, 0, 1, 2]
    assert encoded.num_kept.tolist() == [3, 1, 3]
    assert encoded.note.startswith(
        "f.conll: 2 of 9 words, the ends of 2 sentences, do not fit into max_seq_length 5: "
    )
    batch = encoded.inputs(np.array([1, 2]), 5)
    assert batch["input_word_ids"][:, -1].tolist() == [0, wordpiece.sep_id]
    assert batch["token_weights"].tolist() == [[0, 1, 0, 0, 0], [0, 1, 1, 1, 0]]


def test_a_word_at_the_edge_keeps_what_fits_of_its_pieces(tokenizer):
    first, *others = tokenizer.encode("unbelievable")
    assert others
    encoded = encode_tagged([sentence("of unbelievable", "O B-X")], tokenizer, 4, LABELS, True)
    of = tokenizer.encode("of")
    expected = [tokenizer.cls_id, *of, first, tokenizer.sep_id]
    assert len(of) == 1 and encoded.pieces.ids.tolist() == expected
    assert encoded.places.tolist() == [1, 2] and encoded.note == ""


def test_the_last_batch_is_filled_with_what_fits_into_it(tokenizer):
    """The first sentence is the longest; three of one word come last, and a fourth fills."""
    examples = [sentence("of " * 60 + "of"), *[sentence("is")] * 6]
    encoded = encode_tagged(examples, tokenizer, 64, LABELS, False)
    lengths = encoded.pieces.lengths
    features = Features(encoded, encoded.inputs, lengths, 64, {}, {})
    batches = list(finetuning_dataset(features, 4, training=False).as_numpy_iterator())
    assert [batch["input_word_ids"].shape for batch in batches] == [(4, 64), (4, 32)]
    assert batches[1]["row_numbers"].tolist() == [4, 5, 6, -1]
    assert batches[1]["example_weights"].tolist() == [1, 1, 1, 0]


def test_tags_that_cannot_be_learned(tokenizer):
    examples = [sentence("a b", "O O"), sentence("c d e", "O O B-Z", line=4)]
    with pytest.raises(UserError, match=r"^f\.conll:6: the tag 'B-Z' is not one .*O, B-X, I-X\.$"):
        encode_tagged(examples, tokenizer, 16, LABELS, True)
    with pytest.raises(UserError, match=r"^f\.conll:1: found a word without a tag; .*predict"):
        encode_tagged([sentence("a b")], tokenizer, 16, LABELS, True)
    with pytest.raises(UserError, match="max_seq_length should be at least 3.*received 2"):
        encode_tagged(examples, tokenizer, 2, LABELS, False)
