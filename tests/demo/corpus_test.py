"""A corpus comes back as it was written, and what is held out depends on names alone."""

import random

import pytest

from data_pipeline.errors import UserError
from demo import corpus
from demo.corpus import CorpusDocument


def documents(count: int, sentences: int = 4) -> list[CorpusDocument]:
    return [
        CorpusDocument(
            f"s{i % 3}", f"s{i % 3}.m{i}", [f"Sentence {j} of {i}." for j in range(sentences)]
        )
        for i in range(count)
    ]


def test_held_out_documents_do_not_depend_on_the_order():
    first = corpus.hold_out(documents(100), 0.1)
    held_out = {document.name for document in first if document.split == "heldout"}
    assert len(held_out) == 10
    shuffled = documents(100)
    random.Random(0).shuffle(shuffled)
    again = corpus.hold_out(shuffled, 0.1)
    assert [doc.name for doc in again] == [doc.name for doc in shuffled]
    assert {document.name for document in again if document.split == "heldout"} == held_out


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("share", [0.05, 0.99])
def test_neither_split_is_empty(count, share):
    splits = [document.split for document in corpus.hold_out(documents(count), share)]
    assert set(splits) == set(corpus.SPLITS)


def test_short_documents_are_for_training():
    mixed = [
        *documents(40, sentences=1),
        *[CorpusDocument("t", f"t{i}", list("abc")) for i in "xy"],
    ]
    held_out = [doc for doc in corpus.hold_out(mixed, 0.5) if doc.split == "heldout"]
    assert [document.source for document in held_out] == ["t"]


def test_hold_out_says_what_it_needs():
    with pytest.raises(UserError, match="Two documents of at least 3 sentences.* has 1 "):
        corpus.hold_out(documents(1), 0.05)
    with pytest.raises(UserError, match="--heldout_share.*received 1.5"):
        corpus.hold_out(documents(9), 1.5)


def test_read_gives_what_was_written(tmp_path):
    written = corpus.hold_out(documents(30), 0.2)
    manifest = corpus.write(written, str(tmp_path), {"corpus": None})
    assert corpus.read(str(tmp_path)) == written
    assert manifest["train"]["documents"] + manifest["heldout"]["documents"] == 30
    assert manifest["heldout"]["bytes"] == (tmp_path / "heldout.txt").stat().st_size
    assert sum(counts["sentences"] for counts in manifest["sources"].values()) == 120
    assert not list(tmp_path.glob("*.partial"))


def test_texts_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(UserError, match="sources.tsv does not exist; make it with"):
        corpus.read(str(tmp_path))
    corpus.write(corpus.hold_out(documents(30), 0.2), str(tmp_path), {})
    text = (tmp_path / "train.txt").read_text()
    (tmp_path / "train.txt").write_text(text[: len(text) // 2])
    with pytest.raises(UserError, match=r"train.txt in .* lacks the document s\d"):
        corpus.read(str(tmp_path))


def test_normalized_ignores_case_spaces_and_punctuation():
    assert corpus.normalized(" Read_the  FILE, now!") == corpus.normalized("read the file now")
    assert corpus.normalized("Read the file.") != corpus.normalized("Read the files.")
