"""RACE: reading comprehension with four options, read from the official folders of passages.

`RACE/<split>/<level>/<number>.txt` holds a passage with its questions as JSON.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Iterator, Sequence
from typing import Any

from data_pipeline.errors import UserError
from data_pipeline.files import storage
from data_pipeline.finetuning.examples import ChoiceExample, Split, check_ids
from data_pipeline.finetuning.text_files import json_objects, list_field, text_field

LEVELS = ("middle", "high")  # In the reference's order.
SPLITS = ("train", "dev", "test")
_LETTERS = ("A", "B", "C", "D")
_ALL = "all.txt"
_THREADS = 16


def read_race(data_dir: str, split: str, levels: Sequence[str] = LEVELS) -> Split[ChoiceExample]:
    """The questions of a split; `group` of each is its level, "middle" or "high".

    `data_dir` is the folder with train, dev and test, or the one with RACE in it. Questions are in
    the order of `levels`, then of file names as strings: 10229.txt, 18810.txt, 8217.txt.
    """
    if split not in SPLITS:
        raise UserError(f"RACE has no split {split!r}; choose one of {', '.join(SPLITS)}.")
    folder = os.path.join(os.fspath(data_dir), split)
    below = os.path.join(os.fspath(data_dir), "RACE", split)
    if storage.is_folder(below):
        folder = below
    examples: list[ChoiceExample] = []
    # There are 25,000 passages in small files; on gs:// reading each of them takes a while.
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        for level in levels:
            paths = _paths(os.path.join(folder, level))
            passages = pool.map(lambda path: list(json_objects(path)), paths)
            for path, found in zip(paths, passages):
                for line, passage in found:
                    examples += _questions(passage, level, path, line)
    if not examples:
        raise UserError(f"{folder} holds passages without questions; download RACE again.")
    check_ids(examples)
    return Split(split, examples)


def _paths(folder: str) -> list[str]:
    """The files of a level: one per passage, or else all.txt."""
    # Archives made on a Mac hold files such as ._10229.txt next to the passages.
    names = [
        name
        for name in storage.names_in(folder)
        if name.endswith(".txt") and not name.startswith(".") and name != _ALL
    ]
    # google-research's run_race reads all.txt, one passage per line, which is not in the download.
    if not names and storage.exists(os.path.join(folder, _ALL)):
        names = [_ALL]
    if not names:
        raise UserError(
            f"{folder} has no passages such as 10229.txt. Give the folder of RACE, which has "
            f"{', '.join(SPLITS)}."
        )
    return [os.path.join(folder, name) for name in names]


def _questions(
    passage: dict[str, Any], level: str, path: str, line: int
) -> Iterator[ChoiceExample]:
    """The questions of a passage, in order."""
    place = f"{path}:{line}"
    article = text_field(passage, "article", place)
    name = str(passage.get("id", f"{level}{os.path.basename(path)}:{line}"))
    questions, options = (list_field(passage, field, place) for field in ("questions", "options"))
    answers = [None] * len(questions)
    if "answers" in passage:
        answers = list_field(passage, "answers", place)
    if not len(questions) == len(options) == len(answers):
        raise UserError(
            f"{place}: expected as many lists of options and answers as questions; found "
            f"{len(questions)} questions, {len(options)} options and {len(answers)} answers."
        )
    for number, (question, choices, answer) in enumerate(zip(questions, options, answers)):
        asked = f"{place}: question {number + 1}"
        texts = [question, *choices] if isinstance(choices, list) else []
        if len(texts) != 1 + len(_LETTERS) or not all(isinstance(text, str) for text in texts):
            raise UserError(f"{asked} should be a text with four texts as options.")
        if answer is not None and answer not in _LETTERS:
            raise UserError(f"{asked}: the answer is {answer!r:.40}, not A, B, C or D.")
        label = None if answer is None else _LETTERS.index(answer)
        yield ChoiceExample(
            f"{name}-{number}", article, question, tuple(choices), label, level, path, line
        )
