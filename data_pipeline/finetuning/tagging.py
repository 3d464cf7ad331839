"""Sentences whose words have tags (named entities, parts of speech), from files in CoNLL format.

    -DOCSTART- -X- O          a document begins (optional)
    # from the news           a comment before a sentence
    Anna  NNP  B-PER          a word, further columns, its tag
    sleeps  VBZ  O
                              a sentence ends

If a tab follows the first word of a file, columns are separated by tabs, and words may contain
spaces; otherwise they are separated by runs of spaces and tabs.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from data_pipeline.errors import UserError
from data_pipeline.files import storage
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.text_files import numbered_lines

OUTSIDE = "O"  # The tag of words outside of any entity.
_ENDINGS = (".conll", ".txt")
_DOCUMENT, _COMMENT = "-DOCSTART-", "# "
_CONLLU_COLUMNS = 10


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedExample:
    """A sentence of W words.

    Attributes:
      guid: name of the example, unique in its split: the number of its first line.
      words: the W words, at least one.
      tags: the W tags as in the file; None if unknown.
      source: path of the file.
      line: line of the first word, from 1; the words are on consecutive lines.
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
        """The place of a word, for messages; `word` is its number, from 0."""
        return f"{self.source}:{self.line + word}"


def read_tagged_folder(data_dir: str, split: str) -> Split[TaggedExample]:
    """The sentences of train.conll, dev.conll or test.conll, or of such a file ending in .txt."""
    names = [f"{split}{ending}" for ending in _ENDINGS]
    for name in names:
        path = os.path.join(os.fspath(data_dir), name)
        if storage.exists(path):
            return read_tagged(path, split)
    raise UserError(
        f"{data_dir} has none of the files {', '.join(names)}. Give the folder that contains them, "
        "or name single files: --train_file, --dev_file, --predict_file."
    )


def read_tagged(path: str, split: str) -> Split[TaggedExample]:
    """The sentences of a file in CoNLL format, in order, at least one.

    The first column is the word, the last one its tag. Files of train and dev need tags; others may
    have a single column of words. A byte order mark and Windows line ends are removed.
    """
    path = os.fspath(path)
    examples = list(_sentences(path, needs_tags=split in ("train", "dev")))
    if not examples:
        raise UserError(f"{path} contains no words; expected a word and its tag on each line.")
    return Split(split, examples)


class _Layout(NamedTuple):
    """The columns of a file, determined by the line of its first word.

    Attributes:
      separator: a tab, or a space, which stands for runs of spaces and tabs.
      num_columns: number of columns in each line.
      first_line: number of the line with the first word.
    """

    separator: str
    num_columns: int
    first_line: int


def _sentences(path: str, needs_tags: bool) -> Iterator[TaggedExample]:
    """The sentences of a file, without tags if the file has a single column."""
    layout: _Layout | None = None
    begins_with_comment = False
    for lines in _groups(path):
        words = lines
        while words and _is_comment(words[0][1], layout, begins_with_comment):
            words = words[1:]
        if layout is None:
            begins_with_comment |= len(words) < len(lines)
            if words:
                layout = _layout_of(*words[0], needs_tags, path)
        if not words:
            continue
        assert layout
        rows = [_row(number, line, layout, path) for number, line in words]
        tags = tuple(row[-1] for row in rows) if layout.num_columns > 1 else None
        begin = words[0][0]
        yield TaggedExample(str(begin), tuple(row[0] for row in rows), tags, path, begin)


def _groups(path: str) -> Iterator[list[tuple[int, str]]]:
    """Groups of numbered lines, separated by empty lines and document marks."""
    group: list[tuple[int, str]] = []
    for number, line in numbered_lines(path):
        is_mark = not line.strip(" \t") or _columns(line, _separator(line))[0] == _DOCUMENT
        # `numbered_lines` skips empty lines.
        if group and (is_mark or number > group[-1][0] + 1):
            yield group
            group = []
        if not is_mark:
            group.append((number, line))
    if group:
        yield group


def _is_comment(line: str, layout: _Layout | None, begins_with_comment: bool) -> bool:
    """Whether a line at a possible beginning of a sentence is a comment."""
    if not line.startswith(_COMMENT):
        return False
    # "#" is also a word in real files. So in a file that does not begin with a comment, a line that
    # has as many columns as the others is the word "#" with its tag.
    if begins_with_comment or layout is None:
        return True
    return len(_columns(line, layout.separator)) != layout.num_columns


def _separator(line: str) -> str:
    return "\t" if "\t" in line else " "


def _columns(line: str, separator: str) -> list[str]:
    """The columns of a line: "Anna NNP  B-PER " -> Anna, NNP, B-PER."""
    if separator == "\t":
        return [column.strip(" ") for column in line.split("\t")]
    return re.split("[ \t]+", line.strip(" \t"))


def _layout_of(number: int, line: str, needs_tags: bool, path: str) -> _Layout:
    """The layout of a file, from the line with its first word."""
    separator = _separator(line)
    row = _columns(line, separator)
    if len(row) == 1 and needs_tags:
        raise UserError(
            f"{path}:{number}: expected a word and its tag, separated by a tab or a space; found "
            "one column. Each line of such a file is a word, and an empty line ends a sentence."
        )
    if len(row) == _CONLLU_COLUMNS and row[0].partition("-")[0] == "1":
        raise UserError(
            f"{path}:{number}: this is CoNLL-U, whose first column is a number. Take the columns "
            "of words and tags: grep -v '^#' FILE | grep -vP '^\\d+[-.]' | cut -f2,4"
        )
    return _Layout(separator, len(row), number)


def _row(number: int, line: str, layout: _Layout, path: str) -> list[str]:
    """The columns of a word's line; UserError unless they are as many as the first word's."""
    row = _columns(line, layout.separator)
    if len(row) != layout.num_columns:
        columns = "1 column" if layout.num_columns == 1 else f"{layout.num_columns} columns"
        raise UserError(
            f"{path}:{number}: expected {columns} as in line {layout.first_line}, found "
            f"{len(row)}. Repair the line; an empty line ends a sentence."
        )
    if not row[0] or not row[-1]:
        empty = "word" if not row[0] else "tag"
        raise UserError(f"{path}:{number}: the {empty} is empty. Fill it in, or remove the line.")
    return row


def tag_names(split: Split[TaggedExample]) -> list[str]:
    """The distinct tags of sentences, at least two, sorted, with O first.

    B-PER O I-LOC O -> O, B-PER, I-LOC.
    """
    names = {tag for example in split.examples for tag in example.tags or ()}
    if len(names) < 2:
        found = f"every word has the tag {min(names)!r}" if names else "the words have no tags"
        raise UserError(
            f"{split.source}: {found}; two different tags are needed. The tag is the last column."
        )
    return sorted(names, key=lambda name: (name != OUTSIDE, name))
