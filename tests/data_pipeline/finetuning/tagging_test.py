"""Files of CoNLL's layout: sentences, columns, comments; errors with file and line."""

import dataclasses
import re

import pytest

from data_pipeline.errors import UserError
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.tagging import read_tagged, read_tagged_folder, tag_names

FILE = "Anna\tB-PER\nsleeps\tO\n\n\t\nIn\tO\nRome\tB-LOC\n"
SENTENCES = [(("Anna", "sleeps"), ("B-PER", "O"), 1), (("In", "Rome"), ("O", "B-LOC"), 5)]


@pytest.fixture
def read(tmp_path):
    """(content, split) -> sentences as words, tags and line."""

    def read(content, split="train"):
        path = tmp_path / "data.conll"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        found = read_tagged(str(path), split)
        assert found.name == split and found.source == str(path)
        return [(e.words, e.tags, e.line) for e in found.examples]

    return read


@pytest.mark.parametrize(
    "content",
    [
        FILE,
        FILE.rstrip("\n"),  # No line end after the last word.
        b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode(),
        FILE.replace("\tB", " NN B").replace("\tO", "  VB O "),  # Spaces, three columns.
        FILE.replace("\t", " \t "),
    ],
)
def test_sentences(read, content):
    assert read(content) == SENTENCES


def test_a_place_for_each_word(tmp_path):
    path = tmp_path / "data.conll"
    path.write_text(FILE)
    split = read_tagged(path, "train")
    second = split.examples[1]
    assert second.guid == "5" and second.place == f"{path}:5" and second.place_of(1) == f"{path}:6"
    moved = [dataclasses.replace(e, source="elsewhere", line=9) for e in split.examples]
    assert Split("train", moved).sha256() == split.sha256()
    changed = [dataclasses.replace(second, tags=("O", "O"))]
    assert Split("train", changed).sha256() != Split("train", [second]).sha256()


def test_documents_and_comments(read):
    content = "-DOCSTART- -X- O\n# from the news\na X O\n-DOCSTART- -X- O\nb X O\n# X B-T\n"
    assert read(content) == [(("a",), ("O",), 3), (("b", "#"), ("O", "B-T"), 5)]
    # A file that begins with a comment has comments, whatever their columns.
    assert read("# intro\na O\n\n# Headline\nb B-X\n# I-X\n") == [
        (("a",), ("O",), 2),
        (("b", "#"), ("B-X", "I-X"), 5),
    ]
    assert read("a O\n\n# O\nb O\n") == [(("a",), ("O",), 1), (("#", "b"), ("O", "O"), 3)]
    # With tabs, the words of a comment are no columns.
    assert read("# a O\n# b\na\tO\n\n# c O\nb\tO\n") == [(("a",), ("O",), 3), (("b",), ("O",), 6)]
    assert read("-DOCSTART-x O\n#tag O\n") == [(("-DOCSTART-x", "#tag"), ("O", "O"), 1)]


def test_other_white_space_is_part_of_a_word(read):
    assert read("a\u00a0b O\n\u2028 O\n\u00a0\t O\n") == [
        (("a\u00a0b", "\u2028", "\u00a0"), ("O", "O", "O"), 1)
    ]
    assert read("a b\tO\n") == [(("a b",), ("O",), 1)]


@pytest.mark.parametrize("split", ["predict", "test"])
def test_words_alone(read, split):
    with pytest.raises(UserError, match=":2: expected 1 column as in line 1, found 2"):
        read("a\nb\tO\n", split)
    assert read("a\nb\n\n# c d\n#\n", split) == [(("a", "b"), None, 1), (("#",), None, 5)]
    assert read(FILE, split) == SENTENCES


CONLLU = "1\tAnna\tAnna\tPROPN\t_\t_\t0\troot\t_\t_\n"


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "data.conll contains no words"),
        ("\n\t\n# only this\n-DOCSTART- O\n", "data.conll contains no words"),
        ("\na\n", ":2: expected a word and its tag, .* found one column"),
        ("a\tO\nb\tX\tO\n", ":2: expected 2 columns as in line 1, found 3"),
        ("# c\na X O\n\nb O\n", ":4: expected 3 columns as in line 2, found 2"),
        ("a\tO\nb O\n", ":2: expected 2 columns as in line 1, found 1"),
        ("a O\n# a comment inside\n", ":2: expected 2 columns as in line 1, found 4"),
        ("a\tO\n\tO\n", ":2: the word is empty"),
        ("a\tX\tO\nb\tX\t\n", ":2: the tag is empty"),
        (b"a\tO\n\xff\tO\n", ":2: the text is not UTF-8"),
        (f"# text = Anna\n{CONLLU}", ":2: this is CoNLL-U"),
        (CONLLU.replace("1", "1-2", 1), ":1: this is CoNLL-U"),
    ],
)
def test_bad_files_are_named_with_the_line(read, content, message):
    with pytest.raises(UserError, match=message):
        read(content)


def test_the_hint_for_conllu_is_right(read):
    with pytest.raises(UserError) as error:
        read(CONLLU)
    assert "grep -v '^#' FILE | grep -vP '^\\d+[-.]' | cut -f2,4" in str(error.value)
    assert re.search(r"^\d+[-.]", "1-2\tdu") and not re.search(r"^\d+[-.]", CONLLU)
    assert read("\t".join(CONLLU.split("\t")[i] for i in (1, 3)))[0][1] == ("PROPN",)


def test_a_folder(tmp_path):
    (tmp_path / "train.conll").write_text(FILE)
    (tmp_path / "train.txt").write_text("x O\n")
    (tmp_path / "test.txt").write_text("x\n")
    assert len(read_tagged_folder(tmp_path, "train").examples) == 2
    assert read_tagged_folder(tmp_path, "test").examples[0].tags is None
    with pytest.raises(UserError, match=r"has none of the files dev.conll, dev.txt\. .*--dev_file"):
        read_tagged_folder(str(tmp_path), "dev")


def test_names_of_tags(tmp_path):
    path = tmp_path / "data.conll"

    def names(content):
        path.write_text(content)
        return tag_names(read_tagged(path, "test"))

    assert names("a I-X\nb O\nc B-Y\nd A\n") == ["O", "A", "B-Y", "I-X"]
    assert names("a VERB\nb ADJ\n") == ["ADJ", "VERB"]
    with pytest.raises(UserError, match=r"data.conll: every word has the tag 'O'; two different"):
        names("a O\nb O\n")
    with pytest.raises(UserError, match=r"data.conll: the words have no tags"):
        names("a\nb\n")
