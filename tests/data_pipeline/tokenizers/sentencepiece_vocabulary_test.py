"""Small models learned from a few sentences: their layout, their sizes, failures on the way."""

import re

import pytest
import sentencepiece

from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import TokenizerSettings
from data_pipeline.tokenizers.sentencepiece_vocabulary import _explain, learn_files

LOWER = TokenizerSettings()
LAYOUT = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "(", ")", '"', "-", ".", "–", "£", "€"]


@pytest.fixture(scope="module")
def sentences(small_corpus):
    return [line for line in small_corpus(60).split("\n") if line]


def learn(sentences, vocab_size=48, settings=LOWER, size=1000, coverage=1.0):
    return learn_files(sentences, settings, vocab_size, coverage, size)


def test_files_of_a_vocabulary(sentences):
    files = learn([sentence.upper() for sentence in sentences])
    assert set(files) == {"spiece.model", "spiece.vocab"}
    processor = sentencepiece.SentencePieceProcessor(model_proto=files["spiece.model"])
    rows = [line.split("\t") for line in str(files["spiece.vocab"], "utf-8").splitlines()]
    assert [piece for piece, _ in rows] == [processor.IdToPiece(i) for i in range(48)]
    assert [piece for piece, _ in rows][:13] == LAYOUT and rows[0][1] == "0"
    assert [float(score) for _, score in rows] == pytest.approx(
        [processor.GetScore(i) for i in range(48)], rel=1e-5
    )
    assert not re.search("[A-Z]", "".join(piece for piece, _ in rows[5:])), "it lowers first"
    assert [processor.bos_id(), processor.eos_id()] == [-1, -1]
    assert learn(sentences)["spiece.model"] == files["spiece.model"]


def test_settings_decide_how_text_is_cleaned(sentences):
    def pieces(texts, **settings):
        return str(learn(texts, 60, TokenizerSettings(**settings))["spiece.vocab"], "utf-8")

    quoted = [f"``{sentence}'' 'x'" for sentence in sentences]
    joined = [sentence.replace("``", '"').replace("''", '"') for sentence in quoted]
    assert pieces(quoted, rules="huggingface") == pieces(joined) != pieces(quoted)
    capitals = [sentence.capitalize() for sentence in sentences]
    assert re.search("[A-Z]", pieces(capitals, lower=False).partition("[MASK]")[2])


def test_sizes_that_do_not_fit_are_named(sentences):
    with pytest.raises(
        UserError, match=r"^--vocab_size=9000 is too large .* at most (\d+) pi"
    ) as e:
        learn(sentences, 9000)
    largest = int(re.search(r"at most (\d+)", str(e.value))[1])
    assert learn(sentences, largest)["spiece.vocab"].count(b"\n") == largest
    with pytest.raises(UserError, match=r"^--vocab_size=14 is too small: .* need (\d+)\.") as e:
        learn(sentences, 14)
    smallest = int(re.search(r"need (\d+)", str(e.value))[1])
    with pytest.raises(UserError, match=f"need {smallest}"):
        learn(sentences, smallest - 1)


def test_other_failures_are_passed_on():
    odd = RuntimeError("Internal:\n src/trainer_interface.cc(757) [(a) <= (b)] It is odd. ")
    assert str(_explain(odd, 7)) == (
        "SentencePiece cannot learn --vocab_size=7 pieces from the text: It is odd. Give more "
        "text, or another --vocab_size or --input_sentence_size."
    )


def test_a_failure_of_reading_ends_learning(sentences):
    def breaking():
        yield from sentences
        raise UserError("b.txt is not text.")

    with pytest.raises(UserError, match=r"^b.txt is not text"):
        learn(breaking())
    with pytest.raises(KeyError, match="first"):
        learn({}[name] for name in ["first"])
