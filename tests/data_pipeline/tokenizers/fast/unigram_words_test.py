"""Ids of single words under models made by hand, beside those that SentencePiece gives."""

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2 as protos

from data_pipeline.tokenizers.fast import unigram_words
from data_pipeline.tokenizers.fast.unigram_words import UnigramWords, supports
from data_pipeline.tokenizers.fast.word_cache import Words

MARK = "\u2581"
SCORES = {f"{MARK}ab": -2.5, f"{MARK}a": -1.0, "b": -2.0, MARK: -9.0, "a": -9.0}  # Ids 1 to 5.


def model_of(scores, user_defined=()):
    """A unigram model that leaves text as it is; id 0 is <unk>."""
    model = protos.ModelProto()
    model.trainer_spec.model_type = protos.TrainerSpec.UNIGRAM
    model.trainer_spec.unk_id = 0
    model.normalizer_spec.name = "identity"
    model.pieces.add(piece="<unk>", score=0, type=protos.ModelProto.SentencePiece.UNKNOWN)
    for piece, score in scores.items():
        model.pieces.add(piece=piece, score=score)
    for piece in user_defined:
        kind = protos.ModelProto.SentencePiece.USER_DEFINED
        model.pieces.add(piece=piece, score=0, type=kind)
    return model


def processor_of(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())


def encoded(model, words):
    """For each word its ids, or None where they are not sure; all equal SentencePiece's."""
    processor = processor_of(model)
    content = " ".join(words).encode()
    sizes = np.array([len(word.encode()) for word in words])
    starts = np.cumsum(sizes + 1) - sizes - 1
    ids, sure = UnigramWords(model, processor).encode(Words(content, starts, starts + sizes))
    assert ids.lengths[~sure].sum() == 0 and len(ids.ids) == ids.lengths.sum()
    rows = np.split(ids.ids, np.cumsum(ids.lengths))[:-1]
    found = [row.tolist() if is_sure else None for row, is_sure in zip(rows, sure)]
    for word, row in zip(words, found):
        assert row is None or row == processor.encode(word)
    return found


def test_the_example_of_the_docstring():
    model = model_of(SCORES)
    assert encoded(model, ["ab", "a", "b", "aa"]) == [[1], [2], [4, 3], [2, 5]]
    tie = model_of({**SCORES, "b": -1.5})
    assert encoded(tie, ["ab", "a"]) == [None, [2]]


@pytest.mark.parametrize("lead, is_sure", [(0.05, False), (0.06, False), (0.07, True), (0.1, True)])
def test_a_lead_within_rounding_is_not_sure(lead, is_sure):
    """A 16th: 64 sums, each rounded by up to 2^-10."""
    ahead = model_of({**SCORES, "b": -1.5 - lead})
    behind = model_of({**SCORES, "b": -1.5 + lead})
    assert encoded(ahead, ["ab"]) == [[1] if is_sure else None]
    assert encoded(behind, ["ab"]) == [[2, 3] if is_sure else None]


def test_neighbors_that_are_unknown_become_one():
    found = encoded(model_of(SCORES), ["c", "cd", "acb", "accbé", "日本"])
    assert found == [[4, 0], [4, 0], [2, 0, 3], [2, 0, 3, 0], [4, 0]]


def test_characters_beyond_ascii():
    model = model_of({**SCORES, "é": -3.0, "日": -4.0})
    assert encoded(model, ["é", "aé", "日b"]) == [[4, 6], [2, 6], [4, 7, 3]]


def test_words_of_up_to_31_characters_are_looked_at():
    found = encoded(model_of({**SCORES, "é": -3.0}), ["b" * 31, "b" * 32, "é" * 31, "é" * 32, "b"])
    assert found == [[4] + [3] * 31, None, [4] + [6] * 31, None, [4, 3]]


def test_pieces_that_users_define_win():
    model = model_of({**SCORES, "ba": -2.0}, user_defined=["ab", "abab"])
    assert encoded(model, ["xab", "abab", "bab"])[0][-1] == 7


def test_a_piece_with_a_character_that_is_no_piece():
    """Its words are left to SentencePiece, and so are all others with this character."""
    model = model_of(SCORES, user_defined=["<x>"])
    assert encoded(model, ["<x>", "a<x>b", "<", "ab"]) == [None, None, None, [1]]


def test_words_that_normalization_changes_are_left_alone():
    model = model_of(SCORES)
    model.normalizer_spec.name = "nmt_nfkc_cf"  # Lower-cases, so no letter stands for itself.
    assert encoded(model, ["ab", "a"]) == [[1], [2]]  # Normalized one by one: here they stay.
    mapped = model_of(SCORES)

    class Changing:
        def Normalize(self, texts):
            return [f"{MARK}{text.replace('é', 'e')}" for text in texts]

    words = Words("bé b".encode(), np.array([0, 4]), np.array([3, 5]))
    assert UnigramWords(mapped, Changing()).encode(words)[1].tolist() == [False, True]


def test_no_words():
    model, nothing = model_of(SCORES), Words(b"", np.zeros(0, np.int64), np.zeros(0, np.int64))
    ids, sure = UnigramWords(model, processor_of(model)).encode(nothing)
    assert len(ids.ids) == len(ids.lengths) == len(sure) == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abcdé", min_size=1, max_size=9), min_size=1, max_size=6))
def test_any_words_in_portions_of_any_size(words):
    with pytest.MonkeyPatch.context() as patch:
        model = model_of({**SCORES, "ab": -3.1, "ba": -2.9, "aba": -6.7, f"{MARK}b": -4.0, "c": -5})
        whole = encoded(model, words)
        patch.setattr(unigram_words, "_WORDS_AT_ONCE", 2)
        assert encoded(model, words) == whole


def changed(**changes):
    """A model with other settings of its trainer or normalizer."""
    model = model_of(SCORES)
    for name, value in changes.items():
        is_trainers = hasattr(model.trainer_spec, name)
        setattr(model.trainer_spec if is_trainers else model.normalizer_spec, name, value)
    return model


def test_models_whose_words_stand_alone():
    assert supports(model_of(SCORES))
    assert supports(model_of({**SCORES, "ab": -21.9})), "an unknown character scores 10 less"
    for model in (
        changed(model_type=protos.TrainerSpec.BPE),
        changed(treat_whitespace_as_suffix=True),
        changed(byte_fallback=True),
        changed(add_dummy_prefix=False),
        changed(remove_extra_whitespaces=False),
        changed(escape_whitespaces=False),
        model_of({**SCORES, "a b": -3.0}),
        model_of({**SCORES, f"a{MARK}b": -3.0}),
        model_of({**SCORES, "ab": -22.0}),
    ):
        assert not supports(model)
