"""The inputs of models: completed, checked, and cast to what layers compute with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

_EXPECTED = (
    "a dict with input_word_ids (and, where they are not all 1 and all 0, input_mask and "
    "input_type_ids), or a tensor of word ids; each of integers [{axes}]"
)
_AXES = {2: "batch, sequence", 3: "batch, choices, sequence"}


def complete_inputs(inputs: Any, rank: int = 2) -> dict[str, tf.Tensor]:
    """The three inputs of an encoder, from all that it may be called with.

    Args:
      inputs: a dict with `input_word_ids`, and `input_mask` (1 for real tokens; missing: all are)
        and `input_type_ids` (segment; missing: 0); or word ids alone. Integers or booleans of any
        width, as tensors, arrays or lists [B, S].
      rank: of the tensors; 3 where each example has several sequences.

    Returns:
      `inputs` with `input_word_ids`, `input_mask` and `input_type_ids` as int32 tensors.

    Raises:
      ValueError: there are no word ids, or something has another rank or is no integer.
    """
    given = dict(inputs) if isinstance(inputs, Mapping) else {"input_word_ids": inputs}
    if "input_word_ids" not in given:
        raise ValueError(f"Expected {_expected(rank)}; received a dict with {', '.join(given)}.")
    ids = _integers("input_word_ids", given["input_word_ids"], rank)
    mask, types = given.get("input_mask"), given.get("input_type_ids")
    return {
        **given,
        "input_word_ids": ids,
        "input_mask": tf.ones_like(ids) if mask is None else _integers("input_mask", mask, rank),
        "input_type_ids": (
            tf.zeros_like(ids) if types is None else _integers("input_type_ids", types, rank)
        ),
    }


def lists_to_tensors(inputs: Any) -> Any:
    """Lists, alone or in a dict, as tensors; Keras would take them for structures of scalars."""
    if isinstance(inputs, Mapping):
        return {name: lists_to_tensors(value) for name, value in inputs.items()}
    return tf.convert_to_tensor(inputs) if isinstance(inputs, (list, tuple)) else inputs


def _expected(rank: int) -> str:
    return _EXPECTED.format(axes=_AXES[rank])


def _integers(name: str, value: Any, rank: int) -> tf.Tensor:
    try:
        tensor = tf.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Expected {_expected(rank)}; received {name} of {type(value)}."
        ) from error
    is_integer = tensor.dtype.is_integer or tensor.dtype == tf.bool
    if not is_integer or tensor.shape.rank not in (None, rank):
        raise ValueError(
            f"Expected {_expected(rank)}; received {name} of {tensor.dtype.name} with the shape "
            f"{tensor.shape}. Cast it, or add the missing axis."
        )
    return tf.cast(tensor, tf.int32)
