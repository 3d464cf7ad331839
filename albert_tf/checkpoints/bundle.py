"""Name-keyed TensorFlow checkpoints (the TF1 kind: a prefix with .index and .data files), read and
written.

Loading is strict: a missing, unused or misshapen variable is an error that lists them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras

# Optimizer slots and counters, which are not weights.
_NOT_WEIGHTS = re.compile(r"(^|/)(adam_[mv]|lamb_[mv]|global_step)$")


def our_name(variable: tf.Variable) -> str:
    """The name of a model's variable, without TensorFlow's output suffix."""
    return variable.name.split(":")[0]


def read_shapes(prefix: str) -> dict[str, list[int]]:
    """Names and shapes of the weights in a checkpoint; slots and counters left out, `module/`
    stripped.
    """
    return {
        _strip(name): shape
        for name, shape in _reader(prefix).get_variable_to_shape_map().items()
        if _is_weight(name)
    }


def _is_weight(name: str) -> bool:
    return not _NOT_WEIGHTS.search(name)


def _strip(name: str) -> str:
    return name[len("module/") :] if name.startswith("module/") else name


def _reader(prefix: str) -> tf.train.CheckpointReader:
    if not tf.io.gfile.exists(f"{prefix}.index"):
        raise UserError(
            f"checkpoint {prefix} does not exist: there is no file {prefix}.index. Pass the path "
            "without the ending .index, or a model folder."
        )
    try:
        return tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise UserError(f"checkpoint {prefix} cannot be read: {error}") from None


def _read(reader: tf.train.CheckpointReader, prefix: str, name: str) -> np.ndarray:
    try:
        return reader.get_tensor(name)
    except (tf.errors.OpError, IndexError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"checkpoint {prefix} is damaged: {name} cannot be read ({reason}). Copy it again."
        ) from None


def assign(
    variables: Sequence[tf.Variable],
    prefix: str,
    name_of: Callable[[str], str],
    transposed: Callable[[str], bool] = lambda name: False,
    allow_missing: Sequence[str] = (),
    allow_unused: Sequence[str] = (),
) -> list[str]:
    """Assigns the weights of a checkpoint to variables.

    Args:
      variables: what to fill.
      prefix: the checkpoint's path without .index.
      name_of: our name -> the name in the checkpoint.
      transposed: our name -> whether the checkpoint holds the transpose.
      allow_missing: regular expressions of our names that may be absent from the checkpoint and
        keep their values.
      allow_unused: regular expressions of the checkpoint's names that may be left unread.

    Returns:
      Our names of the variables that kept their values.

    Raises:
      UserError: listing every missing, unused or misshapen variable. Nothing is assigned then.
    """
    reader, shapes = _reader(prefix), read_shapes(prefix)
    stored = {_strip(name): name for name in reader.get_variable_to_shape_map()}
    found, kept, problems = [], [], []
    for variable in variables:
        ours = our_name(variable)
        theirs = name_of(ours)
        expected = list(variable.shape[::-1]) if transposed(ours) else list(variable.shape)
        if theirs in shapes and shapes[theirs] == expected:
            found.append((variable, theirs))
        elif theirs in shapes:
            problems.append(
                f"  misshapen: {theirs} has shape {shapes[theirs]}, the model needs {expected}"
            )
        elif _matches(ours, allow_missing):
            kept.append(ours)
        else:
            problems.append(f"  missing: {theirs}, shape {expected}")
    read = {name_of(our_name(variable)) for variable in variables}
    problems += [
        f"  unused: {name}"
        for name in sorted(shapes)
        if name not in read and not _matches(name, allow_unused)
    ]
    if problems:
        raise UserError(
            f"checkpoint {prefix} does not fit the model:\n"
            + "\n".join(problems)
            + "\nPass the configuration that the checkpoint was made with."
        )
    tensors = [_read(reader, prefix, stored[theirs]) for _, theirs in found]
    for (variable, _), value in zip(found, tensors):
        variable.assign(value.T if transposed(our_name(variable)) else value)
    return kept


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(re.search(pattern, name) for pattern in patterns)


def write(prefix: str, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes a name-keyed checkpoint; the index file, which makes it readable, appears last."""
    names = sorted(tensors)
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.convert_to_tensor(tensors[name]) for name in names],
    )


def values(model: keras.Model) -> dict[str, np.ndarray]:
    """The weights of a model by our names."""
    return {our_name(variable): variable.numpy() for variable in model.variables}
