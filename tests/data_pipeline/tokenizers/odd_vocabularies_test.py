"""Files vocab.txt with a piece twice, blanks, columns: read as their own libraries read them."""

import collections

import pytest
import tensorflow as tf

from data_pipeline.tokenizers.fast.encoder import fast_encoder
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer

SPECIAL = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
VOCABULARIES = {
    "plain": SPECIAL + "the\ncat\n##s\ns\n,\n",
    "twice": SPECIAL + "the\ncat\nthe\n##s\ns\ncat\n,\n",
    "special twice": SPECIAL + "the\n[UNK]\ncat\n[PAD]\n##s\ns\n,\n",
    "blank lines": SPECIAL + "the\n\ncat\n\n  \n##s\ns\n,\n\n",
    "blanks": SPECIAL.replace("[CLS]", " [CLS] ") + "the  \n\tcat\n##s \ns\n,\n",
    "counts": "".join(f"{piece}\t{10 - i}\n" for i, piece in enumerate(SPECIAL.split()))
    + "the 7\ncat\u3000cat\n##s\t3\ns\t2\n,\t1\nthe 1\n",
    "crlf": (SPECIAL + "the\ncat\nthe\n##s\ns\n,\n").replace("\n", "\r\n"),
    "no end": SPECIAL + "the\n##s\ncat\ns\n,\nthe",
}
TEXTS = ["The cats, the cat", "a cat", "s the,s", "", "  "]


def google_vocab(path):
    """google-research/albert's `load_vocab`, word for word but for the reading of the file."""
    vocab = collections.OrderedDict()
    with open(path, encoding="utf-8", newline="\n") as reader:
        while True:
            token = reader.readline()
            if not token:
                break
            token = token.strip().split()[0] if token.strip() else " "
            if token not in vocab:
                vocab[token] = len(vocab)
    return vocab


def transformers_vocab(path):
    """The `load_vocab` of transformers' BertTokenizer."""
    with open(path, encoding="utf-8") as reader:
        return {token.rstrip("\n"): index for index, token in enumerate(reader.readlines())}


def assert_ids(tokenizer, vocab):
    """Every path gives the ids of `vocab`, which the pieces of these texts are looked up in."""
    plain = [tokenizer.encode(text) for text in TEXTS]
    pieces = [tokenizer.encode_pieces(text) for text in TEXTS]
    assert plain == [[vocab[piece] for piece in row] for row in pieces]
    assert pieces[0] == ["the", "cat", "##s", ",", "the", "cat"]
    special = [vocab[piece] for piece in tokenizer.SPECIAL_PIECES]
    assert list(tokenizer.special_ids) == special
    assert graph_tokenizer(tokenizer).tokenize(tf.constant(TEXTS)).to_list() == plain
    assert fast_encoder(tokenizer)(TEXTS).ids.tolist() == [i for row in plain for i in row]


@pytest.mark.parametrize("name", VOCABULARIES)
def test_ids_of_google_research(tmp_path, name):
    path = tmp_path / "vocab.txt"
    path.write_bytes(VOCABULARIES[name].encode())
    tokenizer = load_tokenizer(str(path))
    assert_ids(tokenizer, google_vocab(path))
    # A model has a row for each line, as its vocab_size counts them.
    assert tokenizer.vocab_size == len(VOCABULARIES[name].removesuffix("\n").split("\n"))


@pytest.mark.parametrize("name", ["plain", "twice", "special twice", "blank lines", "crlf"])
def test_ids_of_transformers(tmp_path, name):
    path = tmp_path / "vocab.txt"
    path.write_bytes(VOCABULARIES[name].encode())
    (tmp_path / "tokenizer_settings.json").write_text('{"lower": true, "rules": "huggingface"}')
    assert_ids(load_tokenizer(str(path)), transformers_vocab(path))


def test_a_byte_order_mark_is_left_out(tmp_path, capsys):
    path = tmp_path / "vocab.txt"
    path.write_text(VOCABULARIES["plain"])
    expected = load_tokenizer(str(path)).pieces
    path.write_text(VOCABULARIES["plain"], encoding="utf-8-sig")
    for rules in ("google", "huggingface"):
        assert load_tokenizer(str(path), rules=rules).pieces == expected
    assert capsys.readouterr().err.count("begins with a byte order mark, which is ignored") == 1


@pytest.mark.parametrize(
    "name, rules, line",
    [
        ("plain", "google", None),
        ("crlf", "google", "vocab.txt:8: 'the' is also on line 6; it has the id of its first l"),
        ("twice", "google", 'lowers the ids after it, as in google-research; with "rules": "hugg'),
        ("twice", "huggingface", "also on line 6; it has the id of its last line (2 such lines)"),
        ("blanks", "google", "vocab.txt:3: ' [CLS] ' is read as '[CLS]', without blanks and what"),
    ],
)
def test_each_is_said_in_one_line(tmp_path, capsys, name, rules, line):
    path = tmp_path / "vocab.txt"
    path.write_bytes(VOCABULARIES[name].encode())
    load_tokenizer(str(path), rules=rules)
    load_tokenizer(str(path), rules=rules)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == (line is not None)
    assert all(each.startswith("warning: ") and line in each for each in lines)
