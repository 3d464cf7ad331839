"""Sentences whose words have tags (named entities, parts of speech), from files of CoNLL's layout.

    -DOCSTART- -X- O          a document begins; not needed
    # from the news           a comment before a sentence
    Anna  NNP  B-PER          a word, further columns, its tag
    sleeps  VBZ  O
                              a sentence ends

Columns are separated by tabs, so that words may have spaces in them; or, in a file whose first word
has no tab after it, by stretches of spaces and tabs.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator

from data_pipeline.errors import UserError
from data_pipeline.files import storage
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.text_files import numbered_lines

OUTSIDE = "O"  # The tag of words that are part of nothing.
_ENDINGS = (".conll", ".txt")
_DOCUMENT, _COMMENT = "-DOCSTART-", "# "
_CONLLU_COLUMNS = 10


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedExample:
    """A sentence of W words.

    Attributes:
      guid: name of the example, unique in its split: the number of its first line.
      words: the W words, at least one.
      tags: the W tags as the file has them; None: not known.
      source: path of the file.
      line: line of the first word, from 1; each word has the line after the word before it.
    """

    guid: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    source: str
    line: int

    @property
    def place(self) -> str:
        """The place of the sentence's beginning, for messages: "train.conll:7"."""
        return self.place_of(0)

    def place_of(self, word: int) -> str:
        """The place of a word, for messages; word: its number, from 0."""
        return f"{self.source}:{self.line + word}"


def read_tagged_folder(data_dir: str, split: str) -> Split[TaggedExample]:
    """The sentences of train.conll, dev.conll or test.conll, or of such a file ending in .txt.

    Raises:
      UserError: there is none, or see `read_tagged`.
    """
    names = [f"{split}{ending}" for ending in _ENDINGS]
    for name in names:
        path = os.path.join(os.fspath(data_dir), name)
        if storage.exists(path):
            return read_tagged(path, split)
    raise UserError(
        f"{data_dir} has none of the files {', '.join(names)}. Give the folder that they are in, "
        "or name single files: --train_file, --dev_file, --predict_file."
    )


def read_tagged(path: str, split: str) -> Split[TaggedExample]:
    """The sentences of a file of CoNLL's layout.

    The first column is the word, the last one its tag. A line that begins with "# " is a comment
    where a sentence could begin, unless it has as many columns as the others, which make it the
    word "#".

    Args:
      path: UTF-8 file; a byte order mark, Windows line ends and lines of white space are fine.
      split: name of the split. Files of train and dev have tags; others may have words alone,
        one column.

    Returns:
      The sentences in the order of the file, at least one.

    Raises:
      UserError: the file cannot be read, with the line that is wrong.
    """
    path = os.fspath(path)
    examples = list(_sentences(path, needs_tags=split in ("train", "dev")))
    if not examples:
        raise UserError(f"{path} holds no word; expected a word and its tag on each line.")
    return Split(split, examples)


def _sentences(path: str, needs_tags: bool) -> Iterator[TaggedExample]:
    """The sentences of a file; those without tags where the file has one column."""
    rows: list[list[str]] = []
    separator, num_columns, first_line = "", 0, 0  # Known from the first word on.

    def sentence() -> Iterator[TaggedExample]:
        if rows:
            words = tuple(row[0] for row in rows)
            tags = tuple(row[-1] for row in rows) if num_columns > 1 else None
            begin = last - len(rows) + 1
            yield TaggedExample(str(begin), words, tags, path, begin)
            rows.clear()

    last = 0
    for number, line in numbered_lines(path):
        if number > last + 1:  # Empty lines are left out by `numbered_lines`.
            yield from sentence()
        if not line.strip(" \t") or _columns(line, _separator(line))[0] == _DOCUMENT:
            yield from sentence()
            last = number
            continue
        row = _columns(line, separator or _separator(line))
        if not rows and line.startswith(_COMMENT) and len(row) != num_columns:
            last = number
            continue
        if not num_columns:
            separator, num_columns, first_line = _separator(line), len(row), number
            _check_layout(row, needs_tags, f"{path}:{number}")
        _check_row(row, num_columns, first_line, f"{path}:{number}")
        rows.append(row)
        last = number
    yield from sentence()


def _separator(line: str) -> str:
    return "\t" if "\t" in line else " "


def _columns(line: str, separator: str) -> list[str]:
    """The columns of a line: "Anna NNP  B-PER " -> Anna, NNP, B-PER."""
    if separator == "\t":
        return [column.strip(" ") for column in line.split("\t")]
    return re.split("[ \t]+", line.strip(" \t"))


def _check_layout(row: list[str], needs_tags: bool, place: str) -> None:
    """Checks the columns of a file's first word."""
    if len(row) == 1 and needs_tags:
        raise UserError(
            f"{place}: expected a word and its tag, separated by a tab or a space; found one "
            "column. Each line of such a file is a word, and an empty line ends a sentence."
        )
    if len(row) == _CONLLU_COLUMNS and row[0].partition("-")[0] == "1":
        raise UserError(
            f"{place}: this is CoNLL-U, whose first column is a number. Take the columns of words "
            "and tags: grep -v '^#' FILE | grep -vP '^\\d+[-.]' | cut -f2,4"
        )


def _check_row(row: list[str], num_columns: int, first_line: int, place: str) -> None:
    """Checks the columns of a word beside those of the first word."""
    if len(row) != num_columns:
        columns = "1 column" if num_columns == 1 else f"{num_columns} columns"
        raise UserError(
            f"{place}: expected {columns} as in line {first_line}, found {len(row)}. "
            "Repair the line; an empty line ends a sentence."
        )
    if not row[0] or not row[-1]:
        empty = "word" if not row[0] else "tag"
        raise UserError(f"{place}: the {empty} is empty. Fill it in, or remove the line.")


def tag_names(split: Split[TaggedExample]) -> list[str]:
    """The distinct tags of sentences, sorted, O before the others; at least two.

    B-PER O I-LOC O -> O, B-PER, I-LOC.

    Raises:
      UserError: there are no tags, or a single one.
    """
    names = {tag for example in split.examples for tag in example.tags or ()}
    if len(names) < 2:
        found = f"every word has the tag {min(names)!r}" if names else "the words have no tags"
        raise UserError(
            f"{split.source}: {found}; two different tags are needed. The tag is the last column."
        )
    return sorted(names, key=lambda name: (name != OUTSIDE, name))
