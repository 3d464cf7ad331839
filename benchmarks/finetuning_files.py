"""Files of benchmarks in their official layouts: reads records, and writes some of them."""

from __future__ import annotations

import abc
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Record = Any


class Layout(abc.ABC):
    """A file layout: examples are read as records, which can be written again.

    A record is the smallest unit of a file: a line, a sentence, a paragraph with its questions.
    """

    # Lists in a record with an element for each example; without any, a record is one example.
    _LISTS: tuple[str, ...] = ()

    @abc.abstractmethod
    def read(self, path: Path) -> list[Record]:
        """The records of a file or folder, in order."""

    @abc.abstractmethod
    def write(self, records: Sequence[Record], path: Path) -> None:
        """Writes records so that `read` finds them at `path`; the parent folder must exist."""

    def size(self, record: Record) -> int:
        """The number of examples in a record."""
        return len(record[self._LISTS[0]]) if self._LISTS else 1

    def first(self, records: Sequence[Record], count: int) -> list[Record]:
        """The records with the first `count` examples, cutting the last; all if there are fewer."""
        found: list[Record] = []
        for record in records:
            if count <= 0:
                break
            lists = {name: record[name][:count] for name in self._LISTS}
            found.append({**record, **lists} if lists else record)
            count -= self.size(record)
        return found


@dataclasses.dataclass(frozen=True)
class Lines(Layout):
    """One example per line: TSV, JSON lines.

    Attributes:
      header: first line of the files to write; None: files have no header, also those to read.
    """

    header: str | None = None

    def read(self, path: Path) -> list[str]:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
        return [line for line in lines[self.header is not None :] if line.strip()]

    def write(self, records: Sequence[str], path: Path) -> None:
        header = [] if self.header is None else [self.header]
        path.write_text("".join(f"{line}\n" for line in [*header, *records]), encoding="utf-8")


class Sentences(Layout):
    """CoNLL: a word and its tag per line, an empty line between sentences."""

    def read(self, path: Path) -> list[list[str]]:
        sentences: list[list[str]] = [[]]
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                sentences[-1].append(line)
            elif sentences[-1]:
                sentences.append([])
        return [sentence for sentence in sentences if sentence]

    def write(self, records: Sequence[list[str]], path: Path) -> None:
        path.write_text("".join("\n".join(words) + "\n\n" for words in records), encoding="utf-8")


class Squad(Layout):
    """SQuAD's JSON: a record is a paragraph with its questions."""

    _LISTS = ("qas",)

    def read(self, path: Path) -> list[dict[str, Any]]:
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
        return [paragraph for article in articles for paragraph in article["paragraphs"]]

    def write(self, records: Sequence[dict[str, Any]], path: Path) -> None:
        content = {"version": "", "data": [{"title": "", "paragraphs": list(records)}]}
        path.write_text(json.dumps(content), encoding="utf-8")


class Race(Layout):
    """RACE's folder of a split: a record is a passage with its questions, and its level."""

    _LISTS = ("questions", "options", "answers")

    def read(self, path: Path) -> list[dict[str, Any]]:
        files = [sorted((path / level).glob("*.txt")) for level in ("middle", "high")]
        # Alternate both levels, so that the first records contain both.
        longest = max(map(len, files))
        both = [names[place] for place in range(longest) for names in files if place < len(names)]
        return [
            {**json.loads(file.read_text(encoding="utf-8")), "level": file.parent.name}
            for file in both
        ]

    def write(self, records: Sequence[dict[str, Any]], path: Path) -> None:
        for number, record in enumerate(records):
            folder = path / record["level"]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:05}.txt").write_text(json.dumps(record), encoding="utf-8")
