"""Seventeen kinds of SentencePiece models: every path from text to ids gives the same ids."""

import io
import itertools
import unicodedata

import pytest
import sentencepiece
import tensorflow as tf

from data_pipeline.finetuning.alignment import align
from data_pipeline.tokenizers.fast.encoder import fast_encoder
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import align_graph
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.sentencepiece_vocabulary import USER_DEFINED_SYMBOLS
from tests.data_pipeline.conftest import rows

CONTROLS = ["[CLS]", "[SEP]", "[MASK]"]
KINDS = {
    "unigram": {},
    "google": {"user_defined_symbols": USER_DEFINED_SYMBOLS},
    "symbols with spaces": {"user_defined_symbols": ["new york", "<x>", "the project"]},
    "byte fallback": {"byte_fallback": True, "vocab_size": 380},
    "bpe": {"model_type": "bpe"},
    "bpe with bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 380},
    "char": {"model_type": "char"},
    "no dummy prefix": {"add_dummy_prefix": False},
    "suffix": {"treat_whitespace_as_suffix": True},
    "across spaces": {"split_by_whitespace": False},
    "identity": {"normalization_rule_name": "identity"},
    "nfkc_cf": {"normalization_rule_name": "nfkc_cf"},
    "split digits": {"split_digits": True},
    "mask by the user": {"control_symbols": CONTROLS[:2], "user_defined_symbols": ["[MASK]"]},
    "default ids": {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": 3},
    "spaces kept": {"remove_extra_whitespaces": False},
    "spaces kept across": {"remove_extra_whitespaces": False, "split_by_whitespace": False},
}
ODD_TEXTS = [
    "",
    " ",
    "The  Project   reads,  2010, files",
    "  spaces at both ends  ",
    "tabs\tand\r\nlines\x0b\x0c\x1c.",
    "no-break\u00a0and\u2003wide\u3000spaces",
    "In 2010, or 1,000,000, or 7,",
    "crème brûlée, Zürich",
    "cre\u0300me bru\u0302le\u0301e",
    "\u00a8 a \u00a8 b \u00b4",
    "ﬁne ½ Ⅷ ㍻",
    "İstanbul ıI ΑΣ ς",
    "你好，世界",
    "한국어 \u1112\u1161\u11ab",
    "กรุงเทพ हिन्दी",
    "مرحبا\u200f שלום",
    "zero\u200bwidth\u200d \ufeffmark \u00ad",
    "👩\u200d👩\u200d👧 🇩🇪 \U0001f600",
    "▁the ▁ project▁",
    "[MASK] [CLS] <unk> <pad> <s> <0x41>",
    "``quotes'' ''and`` ```more'''",
    '(a)-b-"c"–£5€.,;:!?',
    "new york the project <x>",
    "nul\0 and control\x01 \x7f\x85 \u2028 \u2029",
    "\ufffd replaced \ue000 \U0010ffff",
    "a" * 40 + " " + "b" * 300,
    "word " * 60,
]


def learn(folder, **options):
    lines = [
        f"The project reads {number}, and {word} new york. It wrote the files in {number} days"
        for number, word in itertools.product(
            (7, 2010, 1995), ["some", "many", "crème", "zürich", "other", "files", "wide"]
        )
    ]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        minloglevel=2,
        num_threads=1,
        hard_vocab_limit=False,
        **{
            "vocab_size": 110, "pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1,
            "unk_piece": "<unk>", "control_symbols": CONTROLS, **options,
        },
    )  # fmt: skip
    path = folder / "spiece.model"
    path.write_bytes(model.getvalue())
    return str(path)


def google_ids(processor, text):
    """google-research/albert's `preprocess_text` and `encode_ids`, with lower-casing.

    Their test for a word mark compares text with bytes, so that the mark stays.
    """
    text = unicodedata.normalize("NFKD", " ".join(text.strip().split()))
    text = "".join(c for c in text if not unicodedata.combining(c)).lower()
    pieces = []
    for piece in processor.EncodeAsPieces(text):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            pieces += [*processor.EncodeAsPieces(piece[:-1].replace("▁", "")), ","]
        else:
            pieces.append(piece)
    return [processor.PieceToId(piece) for piece in pieces]


@pytest.fixture(scope="module", params=rows(KINDS, "google", "bpe with bytes", "across spaces"))
def vocab_file(request, tmp_path_factory):
    return learn(tmp_path_factory.mktemp("kind"), **KINDS[request.param])


def test_ids_are_those_of_google_research(vocab_file):
    tokenizer = SentencePieceTokenizer(vocab_file)
    for text in ODD_TEXTS:
        if "\0" not in text:  # NUL is read as U+FFFD, as graphs cannot keep it.
            assert tokenizer.encode(text) == google_ids(tokenizer.processor, text)


@pytest.mark.parametrize("lower, rules", [(True, "google"), (False, "huggingface")])
def test_every_path_gives_the_same_ids(vocab_file, lower, rules):
    tokenizer = SentencePieceTokenizer(vocab_file, lower, rules)
    expected = [tokenizer.encode(text) for text in ODD_TEXTS]
    assert tokenizer.encode_batch(ODD_TEXTS) == expected
    for flat in (tokenizer.encode_flat(ODD_TEXTS), fast_encoder(tokenizer)(ODD_TEXTS)):
        ids = iter(flat.ids.tolist())
        assert [list(itertools.islice(ids, length)) for length in flat.lengths] == expected
    in_graph = graph_tokenizer(tokenizer)
    texts = tf.constant(ODD_TEXTS)
    assert in_graph.tokenize(texts).to_list() == expected
    aligned = [align(tokenizer, text) for text in ODD_TEXTS]
    assert [pieces.ids.tolist() for pieces in aligned] == expected
    found = align_graph(in_graph, Characters(texts))
    assert found.ids.to_list() == expected
    assert found.starts.to_list() == [pieces.starts.tolist() for pieces in aligned]
    assert found.ends.to_list() == [pieces.ends.tolist() for pieces in aligned]


def test_records_of_a_model_that_keeps_spaces(result_of, tmp_path):
    """google-research collapses spaces before SentencePiece, so the model never sees a run."""
    vocab_file = learn(tmp_path, **KINDS["spaces kept"])
    written = []
    for name, gap, fast in (("runs", "   ", "on"), ("plain", "   ", "off"), ("one", " ", "on")):
        words = f"The project{gap}reads some{gap}files, and wrote the{gap}other files in 2010,"
        (tmp_path / "a.txt").write_text(f"{words}\n{words} too\n{words} again\n" * 4)
        result = result_of(
            "data_pipeline.create_pretraining_data", f"--input={tmp_path}/a.txt",
            f"--vocab_file={vocab_file}", f"--output_dir={tmp_path}/{name}", f"--fast={fast}",
            "--max_seq_length=32", "--masking=static", "--dupe_factor=1", "--num_processes=1",
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        written.append([path.read_bytes() for path in (tmp_path / name).glob("*.tfrecord*")])
    assert written[0] and written[0] == written[1] == written[2]
