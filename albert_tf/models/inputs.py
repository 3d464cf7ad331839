"""The inputs of models: completed, checked, and cast to what layers compute with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

_TOKENS = (
    "a dict with input_word_ids (optionally also input_mask, by default all 1, and "
    "input_type_ids, by default all 0)"
)
# Other libraries' names for these inputs. They are refused, not ignored: a model that ignored an
# attention_mask would silently treat padding as text.
_FOREIGN = {
    "input_ids": "input_word_ids",
    "attention_mask": "input_mask",
    "token_type_ids": "input_type_ids",
}
_AXES = {2: "batch, sequence", 3: "batch, choices, sequence"}
# Inputs that only some models read: name -> axes and dtype.
_FURTHER = {
    "impossible_positions": ("batch, sequence", tf.int32),
    "start_positions": ("batch", tf.int32),
    "masked_lm_positions": ("batch, predictions", tf.int32),
    "masked_lm_ids": ("batch, predictions", tf.int32),
    "masked_lm_weights": ("batch, predictions", tf.float32),
    "sampling_noise": ("batch, predictions", tf.float32),
}


def complete_inputs(
    inputs: Any, rank: int = 2, also: Sequence[str] = (), if_given: Sequence[str] = ()
) -> dict[str, tf.Tensor]:
    """The inputs of a model, from any accepted form of them: `input_word_ids`, `input_mask`
    (missing: 1) and `input_type_ids` (missing: 0) as int32 tensors of one shape, and further ones.

    Args:
      inputs: a dict, or word ids alone; integers or booleans of any width, as tensors or arrays.
      rank: 2 for [B, S]; 3 where each example has several sequences, [B, C, S].
      also: names of further inputs that the model needs.
      if_given: names of further inputs that are optional.

    Raises:
      ValueError: an input is missing, is named as in another library, or does not fit.
    """
    # Keras checks none of this for a subclassed model: a wrong shape or dtype would fail in some
    # layer, whose error names no input. The checks use static shapes, and add no ops to a graph.
    is_dict = isinstance(inputs, Mapping)
    given = dict(inputs) if is_dict else {"input_word_ids": inputs}
    further = (*also, *(name for name in if_given if given.get(name) is not None))
    expected = _expected(rank, further)
    received = f"a dict with {', '.join(given)}" if is_dict else "word ids alone"
    for name, ours in _FOREIGN.items():
        if given.get(name) is not None:
            raise ValueError(f"Expected {expected}; received {received}. Rename {name} to {ours}.")
    missing = [name for name in ("input_word_ids", *also) if given.get(name) is None]
    if missing:
        raise ValueError(f"Expected {expected}; received {received}. Add {', '.join(missing)}.")

    def checked(name: str, shape: tf.TensorShape, dtype: tf.DType = tf.int32) -> tf.Tensor:
        return _cast(name, given[name], shape, dtype, expected)

    ids = checked("input_word_ids", tf.TensorShape([None] * rank))
    complete = {**given, "input_word_ids": ids}
    for name, default in (("input_mask", tf.ones_like), ("input_type_ids", tf.zeros_like)):
        is_missing = given.get(name) is None
        complete[name] = default(ids) if is_missing else checked(name, ids.shape)
    batch = ids.shape[:1]
    shapes = {"batch": batch, _AXES[2]: ids.shape, "batch, predictions": batch.concatenate([None])}
    for name in further:
        axes, dtype = _FURTHER[name]
        complete[name] = checked(name, shapes[axes], dtype)
    return complete


def have_several_texts(inputs: Any) -> bool:
    """Whether inputs, a dict or word ids alone, are [B, C, S]."""
    ids = inputs.get("input_word_ids") if isinstance(inputs, Mapping) else inputs
    return tf.TensorShape(getattr(ids, "shape", None)).rank == 3


def single_texts(inputs: Any) -> tuple[dict[str, tf.Tensor], list[tf.Tensor]]:
    """Inputs [B, C, S] as inputs of B * C texts, [B * C, S]; and the sizes B and C."""
    inputs = complete_inputs(inputs, rank=3)
    batch, texts, sequence = tf.unstack(tf.shape(inputs["input_mask"]))
    names = ("input_word_ids", "input_mask", "input_type_ids")
    flat = {name: tf.reshape(inputs[name], [-1, sequence]) for name in names}
    return flat, [batch, texts]


def lists_to_tensors(inputs: Any) -> Any:
    """Inputs with lists, alone or in a dict, converted to tensors; ValueError if ragged."""
    if isinstance(inputs, Mapping):
        return {name: lists_to_tensors(value) for name, value in inputs.items()}
    if not isinstance(inputs, (list, tuple)):
        return inputs
    try:
        return tf.convert_to_tensor(inputs)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Expected lists of integers with rows of one length; received {str(inputs)[:80]}: "
            f"{str(error)[:200]} Pad short rows, and set input_mask to 0 there."
        ) from error


def _expected(rank: int, also: Sequence[str]) -> str:
    integers = f"each of integers [{_AXES[rank]}]"
    if not also:
        return f"{_TOKENS}, or a tensor of word ids; {integers}"
    further = ", ".join(f"{name} [{_FURTHER[name][0]}]" for name in also)
    return f"{_TOKENS}, {integers}, and {further}"


def _cast(
    name: str, value: Any, shape: tf.TensorShape, dtype: tf.DType, expected: str
) -> tf.Tensor:
    """Casts an input to the dtype; refuses floats where integers are expected, and shapes that do
    not fit.
    """
    try:
        tensor = tf.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Expected {expected}; received {name} of {type(value)}. Pass a tensor or lists."
        ) from error
    is_number = tensor.dtype.is_integer or tensor.dtype == tf.bool
    is_number |= tensor.dtype.is_floating and dtype.is_floating
    if not is_number or not tensor.shape.is_compatible_with(shape):
        raise ValueError(
            f"Expected {expected}; received {name} of {tensor.dtype.name} with the shape "
            f"{tensor.shape}. Cast it, or bring it to the shape {shape}."
        )
    return tf.cast(tensor, dtype)
