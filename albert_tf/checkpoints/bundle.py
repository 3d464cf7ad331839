"""Name-keyed TensorFlow checkpoints: the TF1 kind, a prefix with .index and .data files."""

from __future__ import annotations

import contextlib
import re
import weakref
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import literal_paths
from albert_tf.errors import UserError, message_of

# Optimizer slots and counters, which are not weights.
_NOT_WEIGHTS = re.compile(r"(^|/)(adam_[mv]|lamb_[mv]|global_step)$")
_HUB_SCOPE = "module/"
_READ_ERRORS = (tf.errors.OpError, IndexError, ValueError, RuntimeError)


class BundleWeights:
    """The weights of a checkpoint by name: optimizer slots and counters are left out, TF-Hub's
    `module/` is stripped.
    """

    def __init__(self, prefix: str) -> None:
        """Args: prefix: the path without .index."""
        self.path = prefix
        check_exists(prefix)
        links = contextlib.ExitStack()  # Needed as long as the reader, which opens files late.
        weakref.finalize(self, links.close)
        try:
            self._reader = tf.train.load_checkpoint(
                links.enter_context(literal_paths.literal(prefix))
            )
        except _READ_ERRORS as error:
            raise UserError(f"checkpoint {prefix} cannot be read: {error}") from None
        self._stored = {
            name[len(_HUB_SCOPE) :] if name.startswith(_HUB_SCOPE) else name: name
            for name in self._reader.get_variable_to_shape_map()
            if not _NOT_WEIGHTS.search(name)
        }
        shapes = self._reader.get_variable_to_shape_map()
        self.shapes = {name: shapes[stored] for name, stored in self._stored.items()}

    def read(self, name: str) -> np.ndarray:
        """The weight of that name; a UserError where the file is damaged."""
        try:
            return self._reader.get_tensor(self._stored[name])
        except _READ_ERRORS as error:
            reason = message_of(error)
            raise UserError(
                f"checkpoint {self.path} is damaged: {name} cannot be read ({reason}). Copy it "
                "again."
            ) from None


def check_exists(prefix: str) -> None:
    """Raises UserError when there is no checkpoint of that prefix."""
    if not tf.io.gfile.exists(f"{prefix}.index"):
        raise UserError(
            f"checkpoint {prefix} does not exist: there is no file {prefix}.index. Pass the path "
            "without the ending .index, or a model folder."
        )


def write(prefix: str, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes a name-keyed checkpoint; the index file, which makes it readable, appears last."""
    literal_paths.check_remote(prefix)
    names = sorted(tensors)
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.convert_to_tensor(tensors[name]) for name in names],
    )
