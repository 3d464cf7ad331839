"""Text files to batches of training, read anew in each epoch: no records in between.

The files are read as create_pretraining_data reads them, in Python; all that follows is the graph
of text_dataset.py. As with dynamic records, epochs have the same pairs in another order and with
other masks. So they have the same size, and a step can be found once an epoch was counted.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from data_pipeline import atomic_files, records, storage, text_blocks
from data_pipeline.datasets import SHUFFLE_WINDOW, check_batch, host_rows
from data_pipeline.documents import Corpus, ReadReport, documents_of_block
from data_pipeline.errors import UserError
from data_pipeline.pretraining_settings import PretrainingSettings
from data_pipeline.record_order import batch_epochs, permutation
from data_pipeline.text_dataset import BLOCK_BYTES, ExampleMaker, pretraining_batches
from data_pipeline.tokenizer import Tokenizer

_READ_GROUPS = 16
_END_BYTES = 1 << 20  # Of each end of a file that is too large to be read for its fingerprint.
_READING = ("input_format", "text_field", "language")  # Of a Corpus.


class TrainingText:
    """A corpus to train from.

    Args:
      corpus: the files; documents that occur twice stay.
      tokenizer: how text becomes ids.
      settings: how ids become examples, with dynamic masking.

    Attributes:
      error: the UserError that ended the reading of the files, or None.

    Raises:
      UserError: no such file.
    """

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, settings: PretrainingSettings):
        if settings.masking != "dynamic" or settings.dupe_factor != 1:
            raise ValueError(f"expected dynamic masking and a single copy, received {settings}")
        self._corpus, self._tokenizer, self._settings = corpus, tokenizer, settings
        self._files = corpus.files()
        self._sizes = storage.sizes(self._files)
        self._groups = text_blocks.group_files(self._files, self._sizes, BLOCK_BYTES)
        self._maker = ExampleMaker(tokenizer, settings)
        self.error: UserError | None = None

    def manifest(self) -> dict[str, Any]:
        """What programs ask the manifest of records for; nobody has counted the examples."""
        settings, tokenizer = self._settings, self._tokenizer
        folder, vocab_file = os.path.split(tokenizer.vocab_file)
        return {
            **records.described([], settings, tokenizer),
            "num_records": None,
            "files": self._fingerprints(),
            "settings": dataclasses.asdict(settings),
            "reading": {name: getattr(self._corpus, name) for name in _READING},
            "directory": folder,
            "vocab_file": vocab_file,
        }

    def _fingerprints(self) -> list[dict[str, Any]]:
        """Names, sizes and hashes of the files; of a large corpus, hashes of their ends only."""
        whole = sum(self._sizes) <= records.FULL_CHECK_BYTES
        return [
            {
                "name": os.path.basename(path),
                "bytes": size,
                "sha256": atomic_files.sha256(path) if whole else _sha256_of_ends(path, size),
            }
            for path, size in zip(self._files, self._sizes)
        ]

    def _read(self, group: int) -> Iterator[tuple[list[int], list[bytes]]]:
        """Numbered blocks of documents of a group of files."""
        corpus = self._corpus
        try:
            for block in text_blocks.read_blocks(
                int(group), self._groups[group], BLOCK_BYTES, corpus.input_format, corpus.text_field
            ):
                documents = documents_of_block(block, corpus, ReadReport())
                lines = ["\n".join(sentences).encode("utf-8") for sentences in documents]
                if lines:
                    yield [block.group, block.index], lines
        except UserError as error:
            self.error = error  # TensorFlow makes an error of its own of it.
            raise

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
        """How many examples an epoch has; once there are `limit`, the rest is left uncounted.

        Raises:
          UserError: the files cannot be read, or give no example.
        """
        total = 0
        groups = tf.range(len(self._groups), dtype=tf.int64)
        try:
            for columns in self._examples(groups):
                total += int(columns["num_tokens_a"].shape[0])
                if total >= limit:
                    break
        except tf.errors.OpError as error:
            raise self.explain(error) from None
        if not total:
            raise UserError(
                f"No example could be made of {len(self._files)} file(s) starting with "
                f"{self._files[0]}: expected documents of at least two words, one sentence per "
                "line, blank lines between documents."
            )
        return total

    def explain(self, error: Exception) -> Exception:
        """The UserError behind an error raised while text was read, or else that error."""
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
        """Endless batches for training, see `datasets.pretraining_dataset`.

        To begin at a later step, examples are made again and passed over: those of an epoch at
        most, after one was counted, if it has fewer than the step asks for.

        Args:
          batch_size: B, over all replicas.
          seed: order and masks are functions of (seed, epoch) and (seed, number of the batch).
          start_step: number of batches already used; the data go on exactly there.
          input_context: which of several hosts asks. Each makes the whole batch, and gets its part.
        """
        check_batch(batch_size, start_step)
        num_examples = self.count(start_step * batch_size + 1)
        epoch = functools.partial(self._epoch, SHUFFLE_WINDOW, seed)
        examples = batch_epochs(epoch, num_examples, batch_size, start_step).unbatch()
        batches = pretraining_batches(
            examples, batch_size, self._tokenizer, self._settings, seed=seed, start_step=start_step
        )
        if input_context is None:
            return batches
        first, end = host_rows(batch_size, input_context)
        return batches.map(
            lambda batch: {name: values[first:end] for name, values in batch.items()}
        )


def _sha256_of_ends(path: str, size: int) -> str:
    with storage.open_file(path, "rb") as file:
        digest = hashlib.sha256(file.read(_END_BYTES))
        file.seek(max(0, size - _END_BYTES))
        digest.update(file.read(_END_BYTES))
    return digest.hexdigest()
