"""Examples of fine-tuning tasks: texts, and the label, value or option to predict.

Readers (`glue`, `superglue`, `race`, `tsv`) make them from a benchmark's files, and `features`
turns them into model inputs. Texts and labels are kept exactly as in the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from data_pipeline.errors import UserError


@dataclasses.dataclass(frozen=True, slots=True)
class TextExample:
    """A text, or a pair of texts, with a label or a value.

    Attributes:
      guid: name of the example, unique in its split: the index in the file, or "train-7".
      text_a: the first text.
      text_b: the second text; None if the task has none.
      label: name of the class as in the file; a number for a regression; a tuple of names if there
        may be several; None if unknown.
      source: path of the file.
      line: line of the file, from 1.
    """

    guid: str
    text_a: str
    text_b: str | None
    label: str | float | tuple[str, ...] | None
    source: str
    line: int

    @property
    def place(self) -> str:
        """The place of the example, for messages: "CoLA/train.tsv:7"."""
        return f"{self.source}:{self.line}"


@dataclasses.dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A question about a text, with C options, one of which is right.

    Attributes:
      guid: name of the example, unique in its split, such as "high10229.txt-2".
      context: the text that the question is about.
      question: a question, or a sentence with "_" where the option belongs.
      options: the C options.
      label: index of the right option; None if unknown.
      group: part of the benchmark that is also scored separately ("middle", "high"); "": none.
      source: path of the file.
      line: line of the file, from 1.
    """

    guid: str
    context: str
    question: str
    options: tuple[str, ...]
    label: int | None
    group: str
    source: str
    line: int

    @property
    def place(self) -> str:
        """The place of the example, for messages: "dev/high/10229.txt:1"."""
        return f"{self.source}:{self.line}"


Example = TypeVar("Example")


def check_ids(examples: Iterable[Any]) -> None:
    """Raises UserError if two examples of a split have the same guid; it names both places."""
    seen: dict[str, Any] = {}
    for example in examples:
        first = seen.setdefault(example.guid, example)
        if first is not example:
            raise UserError(
                f"{example.place}: the id {example.guid!r} is also that of {first.place}; answers "
                "are identified by id. Give each example a unique id."
            )


@dataclasses.dataclass(frozen=True)
class Split(Generic[Example]):
    """The examples of one split of a task, in the order of its files.

    Attributes:
      name: "train", "dev", "test", "dev_matched", ...
      examples: at least one.
      skipped_lines: numbers of the lines that were skipped because they hold no complete example.
    """

    name: str
    examples: list[Example]
    skipped_lines: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def source(self) -> str:
        """Path of the file, or of the first of several."""
        first: Any = self.examples[0]
        return first.source

    def sha256(self) -> str:
        """Hash of the examples, independent of the paths of their files."""
        first: Any = self.examples[0]
        names = [field.name for field in dataclasses.fields(first)]
        kept = [name for name in names if name not in ("source", "line")]
        return sha256_of([getattr(example, name) for name in kept] for example in self.examples)

    @property
    def note(self) -> str:
        """A sentence for the user about skipped lines; "" if there are none."""
        if not self.skipped_lines:
            return ""
        lines = ", ".join(map(str, self.skipped_lines[:10]))
        more = ", ..." if len(self.skipped_lines) > 10 else ""
        count = len(self.skipped_lines)
        return (
            f"{self.source}: {count} of {count + len(self)} rows are empty or lack columns and "
            f"were left out (line {lines}{more})."
        )


def sha256_of(records: Iterable[Any]) -> str:
    """Hash of objects, which are identified by their `repr`."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(f"{record!r}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
