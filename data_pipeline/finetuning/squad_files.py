"""Reads contexts and questions from JSON files in the format of SQuAD 1.1 or 2.0."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any, NamedTuple, NoReturn

from data_pipeline.errors import UserError
from data_pipeline.files import storage
from data_pipeline.finetuning.examples import Split, sha256_of
from data_pipeline.finetuning.text_files import find_file, parse_json

_FORM = '{"data": [{"paragraphs": [{"context": ..., "qas": [{"id": ..., "question": ...}]}]}]}'


class Answer(NamedTuple):
    """An answer as annotated.

    Attributes:
      text: a part of the context.
      start: index of its first character in the context, from 0; -1 if the file does not give it.
    """

    text: str
    start: int


class Question(NamedTuple):
    """A question about a context.

    Attributes:
      id: name of the question, unique in the file.
      text: the question.
      context: index of its context in the file's list of contexts.
      answers: all correct answers; empty for an unanswerable question, and in files to predict.
      is_impossible: whether the file marks it as unanswerable.
    """

    id: str
    text: str
    context: int
    answers: tuple[Answer, ...]
    is_impossible: bool


class SquadExamples(NamedTuple):
    """The content of a file.

    Attributes:
      source: path of the file.
      contexts: the paragraphs, each once, regardless of its number of questions.
      questions: in the order of the file.
    """

    source: str
    contexts: list[str]
    questions: list[Question]


@dataclasses.dataclass(frozen=True)
class SquadSplit(Split[Question]):
    """The questions of one file as a split of a task.

    Attributes:
      content: the content of the file; `examples` are its questions.
    """

    content: SquadExamples = dataclasses.field(kw_only=True)

    @property
    def source(self) -> str:
        """Path of the file."""
        return self.content.source

    def sha256(self) -> str:
        """Hash of contexts, questions and answers, independent of the file's path."""
        return sha256_of([*self.content.contexts, *self.content.questions])


class _Reader:
    """Reads one file, and keeps its text to find the line numbers of errors."""

    def __init__(self, path: str) -> None:
        self.path = os.fspath(path)
        if storage.is_folder(self.path):
            raise UserError(f"{self.path} is a folder; give SQuAD's JSON file in it.")
        if not storage.exists(self.path):
            raise UserError(f"The file {self.path} does not exist; give SQuAD's JSON file.")
        content = storage.read_bytes(self.path)
        try:
            self._text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise UserError(f"{path}:{line}: the text is not UTF-8; convert the file.") from error

    def place(self, near: str = "") -> str:
        """File and line of the first occurrence of `near`, a JSON string: "dev.json:12"."""
        # Files may contain non-ASCII letters as they are, or as escapes.
        quoted = (json.dumps(near, ensure_ascii=ascii_) for ascii_ in (False, True))
        found = max(map(self._text.find, quoted)) if near else 0
        return f"{self.path}:{self._text.count(chr(10), 0, max(found, 0)) + 1}"

    def refuse(self, reason: str, near: str = "") -> NoReturn:
        """Raises UserError with the place of `near`."""
        raise UserError(f"{self.place(near)}: {reason}")

    def load(self) -> Any:
        try:
            return parse_json(self._text, self.path)
        except json.JSONDecodeError as error:
            raise UserError(
                f"{self.path}:{error.lineno}: expected JSON in SQuAD's form, {_FORM}; it cannot be "
                f"read: {error.msg}."
            ) from error

    def get(self, value: Any, key: str, kind: type, near: str = "") -> Any:
        """Returns `value[key]`, or raises UserError if it is not of this kind. The error names the
        line of `near`, a JSON string close to the value.
        """
        if not isinstance(value, dict) or not isinstance(value.get(key), kind):
            self.refuse(
                f"expected {key!r} with a value of type {kind.__name__}, as in {_FORM}; found "
                f"{json.dumps(value)[:80]}.",
                near,
            )
        return value[key]

    def answers(self, entry: dict, name: str) -> tuple[Answer, ...]:
        found = []
        for answer in self.get(entry, "answers", list, name) if "answers" in entry else []:
            start = answer.get("answer_start", -1) if isinstance(answer, dict) else -1
            if not isinstance(start, int):
                self.refuse(f"question {name}: answer_start should be a whole number.", name)
            found.append(Answer(self.get(answer, "text", str, name), start))
        return tuple(found)


def read_squad(path: str, training: bool = False) -> SquadExamples:
    """Reads the questions, at least one, of a file in the format of SQuAD 1.1 or 2.0.

    For training, each answer must occur at its place in the context. Evaluation needs only the
    texts of answers; prediction needs no answers.
    """
    # If a text is not at its answer_start, or two questions have the same id, the reference stops
    # or trains on something else. Here such a file is an error.
    reader = _Reader(path)
    contexts: list[str] = []
    questions: list[Question] = []
    seen: set[str] = set()
    for article in reader.get(reader.load(), "data", list):
        for paragraph in reader.get(article, "paragraphs", list):
            context = reader.get(paragraph, "context", str)
            contexts.append(context)
            for entry in reader.get(paragraph, "qas", list, context):
                question = _question(reader, entry, len(contexts) - 1, context)
                if question.id in seen:
                    reader.refuse(
                        f"two questions have the id {question.id}; predictions are identified "
                        "by id. Give each a unique id.",
                        question.id,
                    )
                seen.add(question.id)
                if training:
                    _check_answer(reader, question, context)
                questions.append(question)
    if not questions:
        reader.refuse("expected at least one question; found none. Check the file.")
    return SquadExamples(reader.path, contexts, questions)


def read_squad_file(path: str, split: str) -> SquadSplit:
    """Reads a file as a split; for "train", answers must occur in their contexts."""
    content = read_squad(path, training=split == "train")
    return SquadSplit(split, content.questions, content=content)


def question_place(source: str, name: str) -> str:
    """File and line of the question with the id `name`, for messages: "dev.json:12"."""
    # The file is read again, so that questions need not store their lines. Examples that are not
    # from a file have no line.
    return _Reader(source).place(name) if storage.exists(source) else source


def read_squad_split(version: str, data_dir: str, split: str) -> SquadSplit:
    """Reads a split of an official version: ("1.1", "squad", "dev") -> squad/dev-v1.1.json."""
    if split not in ("train", "dev"):
        raise UserError(
            f"SQuAD has the splits train and dev and no public test set; received {split}. Give "
            "--predict_file, or --splits=dev."
        )
    return read_squad_file(find_file(data_dir, "SQuAD", [f"{split}-v{version}.json"]), split)


def _question(reader: _Reader, entry: Any, number: int, context: str) -> Question:
    name = reader.get(entry, "id", str, context)
    if not context.strip():
        reader.refuse(f"question {name}: its context is empty. Remove the paragraph.", name)
    text = reader.get(entry, "question", str, name)
    answers = reader.answers(entry, name)
    is_impossible = "is_impossible" in entry and reader.get(entry, "is_impossible", bool, name)
    return Question(name, text, number, answers, is_impossible)


def _check_answer(reader: _Reader, question: Question, context: str) -> None:
    """Raises UserError unless the question is impossible or its only answer is at its `start`."""
    if question.is_impossible:
        return
    name = question.id
    if len(question.answers) != 1:
        reader.refuse(
            f"question {name}: expected one answer for training, found {len(question.answers)}. "
            "Is this a file for evaluation? Keep one per question, or mark it is_impossible.",
            name,
        )
    text, start = question.answers[0]
    found = context[max(start, 0) : max(start, 0) + len(text)]
    if start < 0 or not text.strip() or found != text:
        reader.refuse(
            f"question {name}: expected the answer {text[:40]!r} at character {start} of its "
            f"context, found {found[:40]!r}. Correct answer_start.",
            name,
        )
