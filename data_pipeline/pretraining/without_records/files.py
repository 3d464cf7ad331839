"""Text files to batches of training, read anew in each epoch: no records in between.

The files are read as create_pretraining_data reads them, in Python; all that follows is the graph
of dataset.py. As with dynamic records, epochs have the same pairs in another order and with
other masks. So they have the same size, and the place of a step is known once an epoch was counted.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from data_pipeline.corpus.blocks import TextBlock, group_files, read_blocks
from data_pipeline.corpus.documents import Corpus, documents_of_block
from data_pipeline.corpus.report import MAX_EXAMPLES, ReadReport
from data_pipeline.errors import UserError, is_user_error
from data_pipeline.files import atomic_files, storage
from data_pipeline.pretraining.dataset import SHUFFLE_WINDOW
from data_pipeline.pretraining.manifest import manifest_fields
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.statistics import unknown_warning
from data_pipeline.pretraining.without_records.dataset import (
    BLOCK_BYTES,
    ExampleMaker,
    pretraining_batches,
)
from data_pipeline.records import record_folder
from data_pipeline.records.batches import check_batch
from data_pipeline.records.order import batch_epochs, permutation
from data_pipeline.tokenizers.base import Tokenizer

_READ_GROUPS = 16
_END_BYTES = 1 << 20  # Bytes of each end that stand for a large file in its fingerprint.
_READING = ("input_format", "text_field", "language")  # Fields of a Corpus.


class _Warnings:
    """Warnings about the text on stderr, while it is read for the first time.

    Examples are printed as they are met, the counts once all groups were read to their end.

    Args:
      num_groups: number of groups of files.

    Attributes:
      report: all problems so far.
    """

    def __init__(self, num_groups: int) -> None:
        self.report = ReadReport()
        self._next = [0] * num_groups  # Number of the first block of each group that is unread.
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
        """Notes that a group of files was read to its end."""
        with self._lock:
            if group in self._unread:
                self._unread.remove(group)
                if not self._unread:
                    for problem, count in sorted(self.report.problems.items()):
                        _warn(f"input: {problem}: {count:,}")


def _warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr, flush=True)


class TrainingText:
    """A corpus to train from.

    Args:
      corpus: the files; documents that occur twice stay.
      tokenizer: the tokenizer of the text.
      settings: the settings of the examples, with dynamic masking and a single copy.

    Attributes:
      error: the UserError or OSError that ended the reading of the files, or None.

    Raises:
      UserError: no such file.
      ValueError: settings with static masking or several copies.
    """

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, settings: PretrainingSettings) -> None:
        if settings.masking != "dynamic" or settings.dupe_factor != 1:
            raise ValueError(f"expected dynamic masking and a single copy, received {settings}")
        self._corpus, self._tokenizer, self._settings = corpus, tokenizer, settings
        self._files = corpus.files()
        self._sizes = storage.sizes(self._files)
        self._groups = group_files(self._files, self._sizes, BLOCK_BYTES)
        self._maker = ExampleMaker(tokenizer, settings)
        self._warnings = _Warnings(len(self._groups))
        self.error: Exception | None = None

    def manifest(self) -> dict[str, Any]:
        """A manifest like that of records, with num_records None: the examples are not counted."""
        settings, tokenizer = self._settings, self._tokenizer
        folder, vocab_file = os.path.split(tokenizer.vocab_file)
        return {
            **manifest_fields([], settings, tokenizer),
            "num_records": None,
            "files": self._fingerprints(),
            "settings": dataclasses.asdict(settings),
            "reading": {name: getattr(self._corpus, name) for name in _READING},
            "directory": folder,
            "vocab_file": vocab_file,
        }

    def _fingerprints(self) -> list[dict[str, Any]]:
        """Names, sizes and hashes of the files; of a large corpus, hashes of their ends only."""
        whole = sum(self._sizes) <= record_folder.FULL_CHECK_BYTES
        return [
            {
                "name": os.path.basename(path),
                "bytes": size,
                "sha256": atomic_files.file_sha256(path) if whole else _sha256_of_ends(path, size),
            }
            for path, size in zip(self._files, self._sizes)
        ]

    def _read(self, group: int) -> Iterator[tuple[list[int], list[bytes]]]:
        """Numbered blocks of documents of a group of files."""
        corpus = self._corpus
        try:
            for block in read_blocks(
                int(group), self._groups[group], BLOCK_BYTES, corpus.input_format, corpus.text_field
            ):
                report = ReadReport()
                documents = documents_of_block(block, corpus, report)
                lines = ["\n".join(sentences).encode("utf-8") for sentences in documents]
                self._warnings.add(block, report)
                if lines:
                    yield [block.group, block.index], lines
        except Exception as error:
            if is_user_error(error):
                self.error = error  # TensorFlow makes an error of its own of it.
            raise
        self._warnings.end(int(group))

    def _examples(self, groups: tf.Tensor) -> tf.data.Dataset:
        """Examples of the blocks of groups of files, some of which are read by turns."""
        signature = (tf.TensorSpec([2], tf.int64), tf.TensorSpec([None], tf.string))
        blocks = tf.data.Dataset.from_tensor_slices(groups).interleave(
            lambda group: tf.data.Dataset.from_generator(
                self._read, output_signature=signature, args=(group,)
            ),
            cycle_length=min(len(self._groups), _READ_GROUPS),
            block_length=1,
        )
        return self._maker(blocks.prefetch(2))

    def _epoch(self, window: int, seed: int, epoch: tf.Tensor) -> tf.data.Dataset:
        """Single examples of one epoch, shuffled in windows."""

        def shuffle(index: tf.Tensor, columns: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            order = permutation(tf.shape(columns["token_ids"])[0], seed, epoch, index)
            return {name: tf.gather(values, order) for name, values in columns.items()}

        order = permutation(len(self._groups), seed, epoch, tf.constant(-1, tf.int64))
        windows = self._examples(order).unbatch().batch(window)
        return windows.enumerate().map(shuffle).prefetch(1).unbatch()

    def count(self, limit: int) -> int:
        """Number of examples in an epoch; counting stops at `limit` or more.

        Warns when the vocabulary does not suit what was counted.

        Raises:
          UserError: the files cannot be read, or give no example.
        """
        total, unknown, tokens = 0, 0, 0
        groups = tf.range(len(self._groups), dtype=tf.int64)
        try:
            for columns in self._examples(groups):
                ids = columns["token_ids"].numpy()
                total += len(ids)
                tokens += np.count_nonzero(ids)
                unknown += np.count_nonzero(ids == self._tokenizer.unk_id)
                if total >= limit:
                    break
        except tf.errors.OpError as error:
            raise self.explain(error) from None
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
        """The user's error behind one that TensorFlow raised while text was read, if there is."""
        return self.error or error

    @tf.autograph.experimental.do_not_convert
    def batches(
        self,
        batch_size: int,
        *,
        seed: int = 0,
        start_step: int = 0,
        input_context: tf.distribute.InputContext | None = None,
    ) -> tf.data.Dataset:
        """Endless batches for training, see `pretraining.dataset.pretraining_dataset`.

        To begin at a later step, examples are made again and passed over: those of an epoch at
        most, after one was counted, if it has fewer than the step asks for.

        Args:
          batch_size: B, over all replicas.
          seed: order and masks are functions of (seed, epoch) and (seed, number of the batch).
          start_step: number of batches already used; the first batch is the one after them.
          input_context: number of this host among several. Each makes the examples of the whole
            batch, and gets and masks its own rows.

        Returns:
          Batches without end.

        Raises:
          UserError: see `count`.
        """
        check_batch(batch_size, start_step)
        num_examples = self.count(start_step * batch_size + 1)
        epoch = functools.partial(self._epoch, SHUFFLE_WINDOW, seed)
        examples = batch_epochs(epoch, num_examples, batch_size, start_step).unbatch()
        return pretraining_batches(
            examples,
            batch_size,
            self._tokenizer,
            self._settings,
            seed=seed,
            start_step=start_step,
            input_context=input_context,
        )


def _sha256_of_ends(path: str, size: int) -> str:
    """Hexadecimal SHA-256 of the first and the last _END_BYTES of a file."""
    with storage.open_file(path, "rb") as file:
        digest = hashlib.sha256(file.read(_END_BYTES))
        file.seek(max(0, size - _END_BYTES))
        digest.update(file.read(_END_BYTES))
    return digest.hexdigest()
