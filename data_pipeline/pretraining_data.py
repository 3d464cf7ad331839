"""A corpus to a folder of pre-training records: read, tokenize, make records, write, report."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable

import numpy as np
import tensorflow as tf

from data_pipeline import documents, features, records
from data_pipeline.errors import UserError
from data_pipeline.examples import ExampleMaker, PretrainingSettings
from data_pipeline.record_statistics import LABEL_COUNTS_FILE, RecordStatistics
from data_pipeline.tokenization import SETTINGS_FILE, Tokenizer

BLOCK_DOCUMENTS = 256
SHARD_BYTES = 128 << 20
MIN_SHARDS = 8
UNKNOWN_WARNING = 0.01
# A record of S tokens takes some 1.5 times the bytes of its text; text compresses to about 0.4.
_BYTES_PER_TEXT_BYTE, _GZIP_RATIO = 1.5, 2.5


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Where the text is and how to read it; see `documents.read_documents`."""

    patterns: Sequence[str] | str
    input_format: str = "auto"
    text_field: str = "text"
    language: str = "en"


def automatic_shards(files: Iterable[str], dupe_factor: int) -> int:
    """Number of shards of about SHARD_BYTES, at least MIN_SHARDS."""
    text_bytes = sum(
        tf.io.gfile.stat(path).length * (_GZIP_RATIO if path.endswith(".gz") else 1)
        for path in files
    )
    return max(MIN_SHARDS, round(text_bytes * _BYTES_PER_TEXT_BYTE * dupe_factor / SHARD_BYTES))


def _blocks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of `size` items; the last two may be joined, so that none but the first is single."""
    iterator = iter(items)
    block = list(itertools.islice(iterator, size))
    while block:
        following = list(itertools.islice(iterator, size))
        if len(following) == 1:
            yield block + following
            return
        yield block
        block = following


def tokenize_documents(
    block: Sequence[documents.Document], tokenizer: Tokenizer
) -> list[list[np.ndarray]]:
    """Token ids int32 of each sentence of each document; sentences without tokens are left out."""
    ids = iter(tokenizer.encode_batch([s for document in block for s in document.sentences]))
    return [
        [
            np.array(tokens, np.int32)
            for tokens in itertools.islice(ids, len(document.sentences))
            if tokens
        ]
        for document in block
    ]


def _other_document(
    block: Sequence[Sequence[np.ndarray]], own: int
) -> Callable[[np.random.Generator], Sequence[np.ndarray]] | None:
    """Draws a document of the block with text, other than `own`."""
    others = [i for i, sentences in enumerate(block) if sentences and i != own]
    if not others:
        return None
    return lambda rng: block[others[int(rng.integers(len(others)))]]


class _Job:
    """One run: turns blocks of documents into written records and sums."""

    def __init__(self, settings: PretrainingSettings, tokenizer: Tokenizer, num_shards: int):
        self.settings, self.tokenizer, self.num_shards = settings, tokenizer, num_shards
        self.schema = features.pretraining_schema(
            settings.max_seq_length, settings.max_predictions_per_seq
        )
        self.maker = ExampleMaker(settings, tokenizer)
        self.statistics = RecordStatistics(tokenizer.vocab_size)

    def add_block(self, block: Sequence[documents.Document], writer: records.RecordWriter) -> None:
        tokenized = tokenize_documents(block, self.tokenizer)
        for position, (document, sentences) in enumerate(zip(block, tokenized)):
            self.statistics.add_document(sentences, self.tokenizer.unk_id)
            other = None
            if self.settings.sentence_objective == "nsp":
                other = _other_document(tokenized, position)
                if other is None:
                    raise UserError("--sentence_objective=nsp needs at least two documents.")
            count = self._add_document(document.index, sentences, other, writer)
            if not count:
                self.statistics.skipped["document without a pair"] += 1

    def _add_document(
        self, index: int, sentences: Sequence[np.ndarray], other, writer: records.RecordWriter
    ) -> int:
        count = 0
        for copy in range(self.settings.dupe_factor):
            columns_list, skipped, rng = self.maker.document_examples(sentences, index, copy, other)
            self.statistics.skipped.update(skipped)
            shards = rng.integers(self.num_shards, size=len(columns_list))
            for shard, columns in zip(shards.tolist(), columns_list):
                writer.write(shard, features.encode(self.schema, columns))
                self.statistics.add_record(columns)
            count += len(columns_list)
        return count


def _manifest(job: _Job, report: documents.ReadReport, corpus: Corpus) -> dict[str, Any]:
    settings, tokenizer, statistics = job.settings, job.tokenizer, job.statistics
    return {
        "max_seq_length": settings.max_seq_length,
        "max_predictions": settings.max_predictions_per_seq,
        "vocab_size": tokenizer.vocab_size,
        "vocab_fingerprint": tokenizer.fingerprint,
        "vocab_file": tokenizer.STORED_NAME,
        "label_counts_file": LABEL_COUNTS_FILE,
        "tokenizer": dataclasses.asdict(tokenizer.settings),
        "seed": settings.seed,
        "settings": {**dataclasses.asdict(settings), "input_format": corpus.input_format},
        "corpus": {
            "files": [os.path.basename(path) for path in report.files],
            "bytes": documents.total_bytes(report.files),
            **dict(statistics.corpus),
            "unknown_share": statistics.unknown_share,
            "problems": dict(report.problems),
            "problem_examples": report.examples,
        },
        "statistics": statistics.summary(tokenizer.pieces),
    }


def create_pretraining_data(
    corpus: Corpus,
    output_dir: str,
    tokenizer: Tokenizer,
    settings: PretrainingSettings,
    *,
    num_shards: int = 0,
    overwrite: bool = False,
    show_progress: bool = False,
) -> dict[str, Any]:
    """Writes a folder of records with its manifest, and returns the manifest.

    Args:
      corpus: the text.
      output_dir: folder to write; beside the shards it gets the vocabulary,
        tokenizer_settings.json and label_counts.json.
      tokenizer: how text becomes ids.
      settings: how ids become records.
      num_shards: number of files; 0: one for about 128 MB, at least 8.
      overwrite: replace finished data in `output_dir`.
      show_progress: draw a progress bar on stderr.

    Raises:
      UserError: bad input, an output folder with data, or no record could be made; nothing that a
        reader would accept is left behind then.
    """
    records.check_output_dir(output_dir, overwrite)
    files = documents.match_files(corpus.patterns)
    report = documents.ReadReport()
    found = documents.read_documents(
        files, corpus.input_format, report, corpus.text_field, corpus.language
    )
    num_shards = num_shards or automatic_shards(files, settings.dupe_factor)
    job = _Job(settings, tokenizer, num_shards)
    with records.RecordWriter(
        output_dir, num_shards, "pretraining", settings.seed, overwrite
    ) as writer:
        bar = documents.with_progress(found, report, documents.total_bytes(files), show_progress)
        for block in _blocks(bar, BLOCK_DOCUMENTS):
            job.add_block(block, writer)
        if not writer.num_records:
            raise UserError(_nothing_made(files, report, job.statistics.corpus))
        manifest = _manifest(job, report, corpus)
        return writer.finish(manifest, _extra_files(tokenizer, job.statistics))


def _nothing_made(
    files: Sequence[str], report: documents.ReadReport, counts: collections.Counter
) -> str:
    problems = "; ".join(report.examples[:3])
    return (
        f"No record could be made of {len(files)} file(s), {counts['documents']} document(s) and "
        f"{counts['tokens']} token(s) starting with {files[0]}: expected documents of at least two "
        "words, one sentence per line, blank lines between "
        f"documents{': ' if problems else ''}{problems}."
    )


def _extra_files(tokenizer: Tokenizer, statistics: RecordStatistics) -> dict[str, bytes]:
    return {
        tokenizer.STORED_NAME: tokenizer.content(),
        SETTINGS_FILE: tokenizer.settings.json_bytes(),
        LABEL_COUNTS_FILE: statistics.label_counts_json(),
    }
