"""Training batches made directly from text files, without records; each epoch reads the files anew.

The examples of an epoch are the dynamic records that create_pretraining_data would make; they are
parsed and masked like records.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from data_pipeline.corpus.blocks import TextBlock, automatic_block_bytes, group_files, text_bytes
from data_pipeline.corpus.documents import READING, Corpus, documents_of_block
from data_pipeline.corpus.report import MAX_EXAMPLES, ReadReport
from data_pipeline.errors import UserError, is_user_error
from data_pipeline.files import atomic_files, storage
from data_pipeline.pretraining.dataset import SHUFFLE_WINDOW, record_parser
from data_pipeline.pretraining.dynamic_masking import GROUP, DynamicMasking
from data_pipeline.pretraining.examples import BlockExamples
from data_pipeline.pretraining.manifest import manifest_fields
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.statistics import unknown_warning
from data_pipeline.records import record_folder
from data_pipeline.records.batches import check_batch, map_host_rows, with_options
from data_pipeline.records.order import batch_epochs, permutation, shuffled
from data_pipeline.records.python_calls import items_until_exit
from data_pipeline.tokenizers.base import Tokenizer

_READ_GROUPS = 4  # Read in turn; the examples of one block of each, up to 32 MB, are in memory.
_END_BYTES = 1 << 20  # Bytes at either end of a large file that its fingerprint is made from.


class _Warnings:
    """Warnings about the text on stderr while it is read for the first time: examples as they are
    found, and counts when all groups have been read to the end.
    """

    def __init__(self, num_groups: int) -> None:
        self.report = ReadReport()  # All problems so far.
        self._next = [0] * num_groups  # Number of the first unread block of each group.
        self._unread = set(range(num_groups))
        self._lock = threading.Lock()

    def add(self, block: TextBlock, report: ReadReport) -> None:
        """Adds the problems of a block; the blocks of a group come in order."""
        with self._lock:
            if block.index < self._next[block.group]:
                return
            self._next[block.group] = block.index + 1
            self.report.problems.update(report.problems)
            room = MAX_EXAMPLES - len(self.report.examples)
            self.report.examples += report.examples[:room]
            for example in report.examples[:room]:
                _warn(example)

    def end(self, group: int) -> None:
        """Records that a group of files was read to the end."""
        with self._lock:
            if group in self._unread:
                self._unread.remove(group)
                if not self._unread:
                    for problem, count in sorted(self.report.problems.items()):
                        if count > sum(each.endswith(problem) for each in self.report.examples):
                            _warn(f"input: {problem}: {count:,}")


def _warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr, flush=True)


class TrainingText:
    """A corpus to train on, with dynamic masking and a single copy. Duplicates are kept."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, settings: PretrainingSettings) -> None:
        self._corpus, self._tokenizer, self._settings = corpus, tokenizer, settings
        self._files = corpus.files()
        self._sizes = storage.sizes(self._files)
        # Divided as in `creation.make_plan`, because examples depend on the place of their block.
        self._block_bytes = automatic_block_bytes(sum(map(text_bytes, self._files, self._sizes)))
        self._groups = group_files(self._files, self._sizes, self._block_bytes)
        self._warnings = _Warnings(len(self._groups))
        self._num_examples: int | None = None  # Examples per epoch, once counted to the end.
        self.error: Exception | None = None  # The user's error that stopped the reading, if any.

    def manifest(self) -> dict[str, Any]:
        """A manifest like that of records; num_records is None, as examples are not counted."""
        settings, tokenizer = self._settings, self._tokenizer
        folder, vocab_file = os.path.split(tokenizer.vocab_file)
        return {
            **manifest_fields([], settings, tokenizer),
            "num_records": None,
            "files": self._fingerprints(),
            "settings": dataclasses.asdict(settings),
            "reading": {name: getattr(self._corpus, name) for name in READING},
            "directory": folder,
            "vocab_file": vocab_file,
        }

    def _fingerprints(self) -> list[dict[str, Any]]:
        """Names, sizes and hashes of the files; for a large corpus, hashes of their ends only."""
        whole = sum(self._sizes) <= record_folder.FULL_CHECK_BYTES
        return [
            {
                "name": os.path.basename(path),
                "bytes": size,
                "sha256": atomic_files.file_sha256(path) if whole else _sha256_of_ends(path, size),
            }
            for path, size in zip(self._files, self._sizes)
        ]

    def _blocks(self, group: int) -> Iterator[BlockExamples]:
        """The examples of a group of files, block by block."""
        for block in self._corpus.blocks(group, self._groups[group], self._block_bytes):
            report = ReadReport()
            documents = documents_of_block(block, self._corpus, report)
            place = (block.group, block.index)
            examples = BlockExamples(documents, self._settings, self._tokenizer, place)
            self._warnings.add(block, report)
            yield examples
        self._warnings.end(group)

    def _read(self, group: np.ndarray) -> Iterator[list[bytes]]:
        """The serialized examples of a group of files, block by block."""
        try:
            for examples in self._blocks(int(group)):
                if serialized := examples.serialized(0):
                    yield serialized
        except Exception as error:
            if is_user_error(error):
                self.error = error  # TensorFlow replaces it by an error of its own.
            raise

    def epoch(self, seed: int, number: tf.Tensor) -> tf.data.Dataset:
        """The serialized examples of an epoch, whose number is an int64 scalar, in the order of
        training: the dynamic records that create_pretraining_data makes from the same text.
        """
        groups = permutation(len(self._groups), seed, number, tf.constant(-1, tf.int64))
        examples = tf.data.Dataset.from_tensor_slices(groups).interleave(
            lambda group: tf.data.Dataset.from_generator(
                items_until_exit(self._read),
                output_signature=tf.TensorSpec([None], tf.string),
                args=(group,),
            ).unbatch(),
            cycle_length=min(len(self._groups), _READ_GROUPS),
        )
        return shuffled(examples, SHUFFLE_WINDOW, seed, number)

    def count(self, limit: int) -> int:
        """Number of examples in an epoch; counting stops once it reaches `limit`. Files that cannot
        be read or give no example are a UserError. Warns if the vocabulary does not suit the text.
        """
        total, unknown, tokens = 0, 0, 0
        for block in itertools.chain.from_iterable(map(self._blocks, range(len(self._groups)))):
            total += len(block.copy(0)[0])
            tokens += len(block.text.ids)
            unknown += np.count_nonzero(block.text.ids == self._tokenizer.unk_id)
            if total >= limit:
                break
        if not total:
            problems = "; ".join(
                self._warnings.report.examples[:3] or self._warnings.report.problems
            )
            raise UserError(
                f"No example could be made of {len(self._files)} file(s) starting with "
                f"{self._files[0]}: expected documents of at least two words, one sentence per "
                f"line, blank lines between documents{': ' if problems else ''}{problems}."
            )
        if message := unknown_warning(unknown / tokens):
            _warn(message)
        return total

    def explain(self, error: Exception) -> Exception:
        """The user's error that caused a TensorFlow error during reading, if there is one."""
        return self.error or error

    @tf.autograph.experimental.do_not_convert
    def batches(
        self,
        batch_size: int,
        *,
        seed: int = 0,
        start_step: int = 0,
        examples_before: int | None = None,
        input_context: tf.distribute.InputContext | None = None,
        span_mask_share: float = 0.0,
    ) -> tf.data.Dataset:
        """Infinite training batches, see `pretraining.dataset.pretraining_dataset`. Each host makes
        the examples of the whole batch, but gets and masks only its own rows.
        """
        # To start at a later step, at most one epoch of examples is made again and skipped, after
        # counting as many examples; a whole epoch is counted only once.
        check_batch(batch_size, start_step)
        if examples_before is None:
            examples_before = start_step * batch_size
        num_examples = self._num_examples or self.count(examples_before + 1)
        if num_examples <= examples_before:
            self._num_examples = num_examples
        epoch = functools.partial(self.epoch, seed)
        batches = batch_epochs(epoch, num_examples, batch_size, examples_before)
        schema_of = manifest_fields([], self._settings, self._tokenizer)
        masker = DynamicMasking(self._settings, self._tokenizer, span_mask_share)
        parse = record_parser(schema_of, masker, seed)
        return with_options(
            map_host_rows(batches, parse, batch_size, start_step, input_context, GROUP)
        )


def _sha256_of_ends(path: str, size: int) -> str:
    """Hexadecimal SHA-256 of the first and the last _END_BYTES of a file."""
    with storage.open_file(path, "rb") as file:
        digest = hashlib.sha256(file.read(_END_BYTES))
        file.seek(max(0, size - _END_BYTES))
        digest.update(file.read(_END_BYTES))
    return digest.hexdigest()
