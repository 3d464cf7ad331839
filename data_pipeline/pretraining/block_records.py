"""Makes files of records from a block of text: a pure function of block, vocabulary and settings.

It works in the same way in one process, in many, and on a cluster. An interrupted run can skip
finished blocks: the note with a block's result is written last, so a block with a note is finished.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from data_pipeline.corpus.blocks import TextBlock
from data_pipeline.corpus.deduplication import document_digests
from data_pipeline.corpus.documents import Corpus, documents_of_block, number_of_documents
from data_pipeline.corpus.report import ReadReport
from data_pipeline.files import atomic_files, storage
from data_pipeline.pretraining.columns import RecordColumns
from data_pipeline.pretraining.examples import BlockExamples
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.statistics import RecordStatistics
from data_pipeline.records import example_bytes
from data_pipeline.records.record_folder import write_shard
from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings
from data_pipeline.tokenizers.loading import load_tokenizer

CODE_VERSION = 2  # Increase it when the same block would give different records.


@dataclasses.dataclass(frozen=True)
class Job:
    """The settings that determine the records of a block; can be sent to another process."""

    corpus: Corpus
    settings: PretrainingSettings
    vocab_file: str
    tokenizer: TokenizerSettings  # Without None.
    identity: tuple[str | bool | None, ...]  # The tokenizer's `identity`.
    folder: str  # The folder for records and notes.
    fast: bool = True  # Tokenize each word once (tokenizers/fast); the ids are the same.

    def load_tokenizer(self) -> Tokenizer:
        """The tokenizer; loaded once per process."""
        return _load_tokenizer(self.vocab_file, **dataclasses.asdict(self.tokenizer))

    @functools.cached_property
    def fingerprint(self) -> bytes:
        """SHA-256, equal for jobs that make the same records from a block."""
        decides = {
            "version": CODE_VERSION,
            "text_field": self.corpus.text_field,
            "language": self.corpus.language,
            "settings": self.settings.to_manifest(),
            "vocabulary": self.identity,
        }
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode("utf-8")).digest()

    @property
    def prefix(self) -> str:
        """Prefix of the names of unfinished files; it differs between settings."""
        return f"{self.fingerprint.hex()[:16]}-"


_load_tokenizer = functools.lru_cache(maxsize=1)(load_tokenizer)


@dataclasses.dataclass
class BlockResult:
    """The result of one block."""

    name: str
    key: str  # Fingerprint of everything that determines the result.
    text_bytes: int
    shards: list[dict[str, Any]]  # name, num_records, bytes and sha256 of each file.
    report: ReadReport
    statistics: RecordStatistics

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads."""
        return {
            "name": self.name,
            "key": self.key,
            "text_bytes": self.text_bytes,
            "shards": self.shards,
            "problems": dict(self.report.problems),
            "examples": self.report.examples,
            "statistics": self.statistics.to_json(),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> BlockResult:
        """Reads the value that `to_json` returned."""
        report = ReadReport()
        report.problems.update(value["problems"])
        report.examples.extend(value["examples"])
        statistics = RecordStatistics.from_json(value["statistics"])
        values = {name: value[name] for name in ("name", "key", "text_bytes", "shards")}
        return cls(**values, report=report, statistics=statistics)


def note_path(job: Job, block_name: str) -> str:
    """Path of the note with a block's result."""
    return os.path.join(job.folder, f"block-{job.prefix}{block_name}.json")


def _key(block: TextBlock, dropped: Sequence[int], job: Job) -> str:
    """Fingerprint of everything that determines the result of a block, including its text."""
    # So a note from other settings or another text is never used.
    digest = hashlib.blake2b(job.fingerprint, digest_size=16)
    digest.update(json.dumps([block.name, list(dropped)]).encode("utf-8"))
    for part in block.parts:
        described = [part.path, part.input_format, part.first_line, len(part.content)]
        digest.update(json.dumps([*described, list(part.problems)]).encode("utf-8"))
        digest.update(part.content)
    return digest.hexdigest()


def finished_block(block: TextBlock, dropped: Sequence[int], job: Job) -> BlockResult | None:
    """The result of this block in an earlier run, if it was finished and its files exist."""
    path = note_path(job, block.name)
    if not storage.exists(path):
        return None
    note = atomic_files.read_json(path)
    if note["key"] != _key(block, dropped, job):
        return None
    found = BlockResult.from_json(note)
    for shard in found.shards:
        path = os.path.join(job.folder, job.prefix + shard["name"])
        if not storage.exists(path) or storage.size(path) != shard["bytes"]:
            return None
    return found


def process_block(
    block: TextBlock, dropped: Sequence[int], job: Job, tokenizer: Tokenizer | None = None
) -> BlockResult:
    """Writes one file of records per copy of the text, without the documents `dropped`, and a note
    with the result. Returns the result, or that of an earlier run that finished the block.
    `tokenizer`: the job's tokenizer, if it is already loaded.
    """
    found = finished_block(block, dropped, job)
    if found is not None:
        return found
    settings, tokenizer = job.settings, tokenizer or job.load_tokenizer()
    report, statistics = ReadReport(), RecordStatistics(tokenizer.vocab_size)
    documents = documents_of_block(block, job.corpus, report, dropped)
    examples = BlockExamples(documents, settings, tokenizer, (block.group, block.index), job.fast)
    statistics.formats.update(part.input_format for part in block.parts)
    statistics.add_documents(examples.text, tokenizer.unk_id)
    shards = []
    for copy in range(settings.dupe_factor):
        pairs, parts = examples.copy(copy)
        if copy == 0:
            statistics.add_held_tokens(pairs, examples.ids, tokenizer.sep_id)
        if len(pairs):
            name = f"pretraining-{block.name}-{copy:02d}.tfrecord"
            path = os.path.join(job.folder, job.prefix + name)
            shards.append({"name": name, **write_shard(_chunks(parts, statistics), path)})
    statistics.skipped.update(examples.skipped)
    key = _key(block, dropped, job)
    result = BlockResult(block.name, key, block.text_bytes, shards, report, statistics)
    atomic_files.write_json(note_path(job, block.name), result.to_json(), indent=None)
    return result


class DocumentPlace(NamedTuple):
    """Place of a document in a corpus; places sort in the order of the corpus."""

    group: int  # Number of the group of files, from 0.
    block: int  # Number of the block in the group, from 0.
    number: int  # Number of the document in the block, from 0.


def document_places(
    blocks: Iterable[TextBlock], corpus: Corpus
) -> Iterator[tuple[int, DocumentPlace]]:
    """(digest, place) of each document."""
    for block in blocks:
        for number, digest in enumerate(document_digests(block, corpus)):
            yield digest, DocumentPlace(block.group, block.index, number)


def process_with_kept(
    blocks: Iterable[TextBlock], kept: Container[DocumentPlace], job: Job
) -> Iterator[BlockResult]:
    """Makes the records of the documents at the places `kept`, block by block."""
    for block in blocks:
        places = [
            DocumentPlace(block.group, block.index, number)
            for number in range(number_of_documents(block, job.corpus))
        ]
        yield process_block(block, [place.number for place in places if place not in kept], job)


def _chunks(
    parts: Iterable[RecordColumns], statistics: RecordStatistics
) -> Iterator[tuple[int, bytes]]:
    """Yields (number of records, their frames), and adds the records to `statistics`."""
    for made in parts:
        statistics.add_records(made)
        examples = example_bytes.encode_examples(made.columns)
        yield made.num_records, b"".join(map(example_bytes.frame, examples))
