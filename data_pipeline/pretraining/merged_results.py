"""Merges the results of blocks one by one, in any order."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable
from typing import Any

from data_pipeline.corpus.report import MAX_EXAMPLES
from data_pipeline.pretraining.block_records import BlockResult
from data_pipeline.pretraining.statistics import RecordStatistics


class MergedResults:
    """Sums over blocks, and their files; independent of the order of `add` and `merge`."""

    def __init__(self, vocab_size: int) -> None:
        self.statistics = RecordStatistics(vocab_size)
        self.problems: collections.Counter = collections.Counter()
        self.text_bytes = 0
        # Block -> its files as JSON, about 200 bytes per file. Everything else is summed: the label
        # counts of a block alone would take a thousand times as much.
        self._files: dict[str, bytes] = {}
        self._examples: list[tuple[str, int, str]] = []  # Block, index in its list, example.

    def add(self, result: BlockResult) -> None:
        """Adds the result of one block."""
        self.statistics.merge(result.statistics)
        self.problems.update(result.report.problems)
        self.text_bytes += result.text_bytes
        self._files[result.name] = json.dumps(result.shards).encode("utf-8")
        self._keep((result.name, i, text) for i, text in enumerate(result.report.examples))

    def merge(self, other: MergedResults) -> None:
        """Adds the merged results of other blocks."""
        self.statistics.merge(other.statistics)
        self.problems.update(other.problems)
        self.text_bytes += other.text_bytes
        self._files.update(other._files)
        self._keep(other._examples)

    def _keep(self, examples: Iterable[tuple[str, int, str]]) -> None:
        self._examples = sorted([*self._examples, *examples])[:MAX_EXAMPLES]

    def shards(self) -> list[dict[str, Any]]:
        """The manifest entries of the files, in the manifest's order."""
        return [shard for name in sorted(self._files) for shard in json.loads(self._files[name])]

    def examples(self) -> list[str]:
        """The first problems of the corpus, as "file:line: problem"."""
        return [text for _, _, text in self._examples]

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads."""
        return {
            "statistics": self.statistics.to_json(),
            "problems": dict(self.problems),
            "text_bytes": self.text_bytes,
            "files": {name: json.loads(files) for name, files in self._files.items()},
            "examples": self._examples,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> MergedResults:
        """Reads the value that `to_json` returned."""
        merged = cls(0)
        merged.statistics = RecordStatistics.from_json(value["statistics"])
        merged.problems.update(value["problems"])
        merged.text_bytes = value["text_bytes"]
        for name, files in value["files"].items():
            merged._files[name] = json.dumps(files).encode("utf-8")
        # JSON converts tuples to lists, which cannot be compared with tuples.
        merged._examples = [tuple(example) for example in value["examples"]]
        return merged
