"""BoolQ, CB and COPA: three tasks of SuperGLUE, in JSON lines.

google-research/albert does not have these tasks; the readers below describe how they become texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from data_pipeline.errors import UserError
from data_pipeline.finetuning.examples import ChoiceExample, Example, Split, TextExample, check_ids
from data_pipeline.finetuning.text_files import find_file, json_objects, text_field

# SuperGLUE calls the dev split val; BoolQ's own download has dev.jsonl.
_FILES = {"train": ["train.jsonl"], "dev": ["val.jsonl", "dev.jsonl"], "test": ["test.jsonl"]}
BOOLQ_LABELS = ("false", "true")
# In the order of MNLI, so that a head trained on MNLI fits.
CB_LABELS = ("contradiction", "entailment", "neutral")
# COPA's own questions (Roemmele et al., 2011).
_COPA_QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}


def read_boolq(data_dir: str, split: str) -> Split[TextExample]:
    """Yes/no questions about a passage: the passage is text A, the question text B.

    `data_dir`, here and below, is SuperGLUE's root with a folder for the task, or that folder.
    """
    return _read("BoolQ", data_dir, split, _boolq)


def _boolq(record: dict[str, Any], guid: str, source: str, line: int) -> TextExample:
    place = f"{source}:{line}"
    name = "label" if "label" in record else "answer"  # BoolQ's own files have "answer".
    answer = record.get(name)
    if answer is not None and not isinstance(answer, bool):
        raise UserError(f"{place}: expected true or false in {name!r}; found {answer!r:.40}.")
    passage, question = (text_field(record, field, place) for field in ("passage", "question"))
    label = None if answer is None else BOOLQ_LABELS[answer]
    # The passage is A because it is nearly always longer; the longer text is truncated.
    return TextExample(guid, passage, question, label, source, line)


def read_cb(data_dir: str, split: str) -> Split[TextExample]:
    """CommitmentBank: does the premise (text A) entail the hypothesis (text B)?"""
    return _read("CB", data_dir, split, _cb)


def _cb(record: dict[str, Any], guid: str, source: str, line: int) -> TextExample:
    place, label = f"{source}:{line}", record.get("label")
    if label is not None and label not in CB_LABELS:
        raise UserError(f"{place}: the label is {label!r:.40}, not one of {', '.join(CB_LABELS)}.")
    premise, hypothesis = (text_field(record, field, place) for field in ("premise", "hypothesis"))
    return TextExample(guid, premise, hypothesis, label, source, line)


def read_copa(data_dir: str, split: str) -> Split[ChoiceExample]:
    """Choice of plausible alternatives: which of two sentences is the cause or the result?

    The premise is the context, and the questions are COPA's original ones:

        {"premise": "The glass broke.", "choice1": "It fell.", "choice2": "It rang.",
         "question": "cause", "label": 0}
        -> "The glass broke." | "What was the cause of this?" | "It fell.", "It rang."

    so that each row is [CLS] premise [SEP] question choice [SEP], as in RACE.
    """
    return _read("COPA", data_dir, split, _copa)


def _copa(record: dict[str, Any], guid: str, source: str, line: int) -> ChoiceExample:
    place, label = f"{source}:{line}", record.get("label")
    # In Python True == 1, but it is not a label here.
    if label is not None and (type(label) is not int or label not in (0, 1)):
        raise UserError(f"{place}: expected 0 or 1 in 'label'; found {label!r:.40}.")
    premise, asked, *options = (
        text_field(record, field, place) for field in ("premise", "question", "choice1", "choice2")
    )
    if asked not in _COPA_QUESTIONS:
        raise UserError(f"{place}: expected cause or effect in 'question'; found {asked!r:.40}.")
    return ChoiceExample(
        guid, premise, _COPA_QUESTIONS[asked], tuple(options), label, "", source, line
    )


def _read(
    folder: str,
    data_dir: str,
    split: str,
    example: Callable[[dict[str, Any], str, str, int], Example],
) -> Split[Example]:
    """Reads a file; `example` makes an example from an object, its name, its file and its line."""
    if split not in _FILES:
        raise UserError(f"{folder} has no split {split!r}; choose one of {', '.join(_FILES)}.")
    path = find_file(data_dir, folder, _FILES[split])
    examples = [
        example(record, str(record.get("idx", f"{split}-{line - 1}")), path, line)
        for line, record in json_objects(path)
    ]
    if not examples:
        raise UserError(f"{path} holds no example; download the data of {folder} again.")
    check_ids(examples)
    return Split(split, examples)
