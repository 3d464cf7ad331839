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

# Slots and counters of google-research's and TensorFlow's optimizers, which are not weights.
_NOT_WEIGHTS = re.compile(
    r"(^|/)(adam_[mv]|lamb_[mv]|(Adam|RMSProp|Ftrl|Adadelta)(_\d+)?|Momentum|Adagrad|beta[12]_power"
    r"|global_step)$"
)
_AVERAGE = "/ExponentialMovingAverage"  # Suffix of a weight's moving average over training.
_HUB_SCOPE = "module/"
_READ_ERRORS = (tf.errors.OpError, IndexError, ValueError, RuntimeError)


class BundleWeights:
    """The weights of a checkpoint by name, without optimizer slots and counters, and without
    TF-Hub's prefix `module/`. `has_averages`: whether it also holds averages of its weights.
    """

    def __init__(self, prefix: str, use_averages: bool = False) -> None:
        """prefix: the path without .index. use_averages: read weights as averages over training."""
        self.path = prefix
        check_exists(prefix)
        links = contextlib.ExitStack()  # Must outlive the reader, which opens files lazily.
        weakref.finalize(self, links.close)
        try:
            self._reader = tf.train.load_checkpoint(
                links.enter_context(literal_paths.literal(prefix))
            )
        except _READ_ERRORS as error:
            raise UserError(f"checkpoint {prefix} cannot be read: {error}") from None
        shapes = self._reader.get_variable_to_shape_map()
        found = {
            name.removeprefix(_HUB_SCOPE): name for name in shapes if not _NOT_WEIGHTS.search(name)
        }
        self._stored = {ours: name for ours, name in found.items() if not ours.endswith(_AVERAGE)}
        self.has_averages = len(self._stored) < len(found)
        if use_averages:
            if not self.has_averages:
                raise UserError(
                    f"--use_averages: checkpoint {prefix} holds no averages (names that end in "
                    f"{_AVERAGE}). Leave it out."
                )
            self._stored = {name: found.get(name + _AVERAGE, name) for name in self._stored}
        self.shapes = {name: shapes[stored] for name, stored in self._stored.items()}

    def read(self, name: str) -> np.ndarray:
        """The weight of that name; raises UserError if the file is damaged."""
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
