"""Examples of fine-tuning tasks: texts, and the label, value or option that is to be found.

Readers (`glue`, `superglue`, `race`, `tsv`) make them of a benchmark's files, and `features` makes
a model's inputs of them. Texts and labels are those of the file, character by character.
"""

from __future__ import annotations

import dataclasses
from typing import Generic, TypeVar


@dataclasses.dataclass(frozen=True, slots=True)
class TextExample:
    """A text, or a pair of texts, with a label or a value.

    Attributes:
      guid: name of the example, unique in its split: the file's own index, or "train-7".
      text_a: the first text.
      text_b: the second text; None: the task has none.
      label: name of the class as the file has it; a number in a regression; None: not known.
      source: path of the file.
      line: line of the file, from 1.
    """

    guid: str
    text_a: str
    text_b: str | None
    label: str | float | None
    source: str
    line: int

    @property
    def place(self) -> str:
        """Where the example stands, for messages: "CoLA/train.tsv:7"."""
        return f"{self.source}:{self.line}"


@dataclasses.dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A question about a text, with C options, one of which is right.

    Attributes:
      guid: name of the example, unique in its split, such as "high10229.txt-2".
      context: the text that the question is about.
      question: a question, or a sentence with "_" where the option belongs.
      options: the C options.
      label: index of the right option; None: not known.
      group: part of the benchmark that is scored by itself, too ("middle", "high"); "": none.
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
        """Where the example stands, for messages: "dev/high/10229.txt:1"."""
        return f"{self.source}:{self.line}"


Example = TypeVar("Example", TextExample, ChoiceExample)


@dataclasses.dataclass(frozen=True)
class Split(Generic[Example]):
    """The examples of one split of a task, in the order of its files.

    Attributes:
      name: "train", "dev", "test", "dev_matched", ...
      examples: at least one.
      skipped_lines: numbers of the lines that hold no complete example and were left out.
    """

    name: str
    examples: list[Example]
    skipped_lines: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def note(self) -> str:
        """A sentence about the lines that were left out, for people; "" when there are none."""
        if not self.skipped_lines:
            return ""
        lines = ", ".join(map(str, self.skipped_lines[:10]))
        more = ", ..." if len(self.skipped_lines) > 10 else ""
        return (
            f"{self.examples[0].source}: {len(self.skipped_lines)} of "
            f"{len(self.skipped_lines) + len(self)} rows lack columns and were left out (line "
            f"{lines}{more})."
        )
