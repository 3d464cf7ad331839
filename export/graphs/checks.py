"""Checks of requests in a graph: the conditions that it asserts, and the sentence in the error.

Requests may contain anything. Without these checks, a GPU lookup returns zeros for ids outside a
table, and TensorFlow's errors are a page about its nodes.
"""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig

REFUSALS = (
    tf.errors.InvalidArgumentError,
    tf.errors.OutOfRangeError,
    tf.errors.UnimplementedError,
    UnicodeDecodeError,  # The message quotes bytes of the request that are not UTF-8.
)
_LONGEST = 300  # The most characters of a reason that are reported.


def reason(error: Exception) -> str:
    """The sentence in one of the errors of REFUSALS: the last line before the node's name."""
    if isinstance(error, UnicodeDecodeError):
        return "the request contains bytes that are not UTF-8"
    message = str(getattr(error, "message", error))
    sentence = message.split("[[{{node")[0].strip()
    # The message may quote a value of the request, which can have any length.
    return (sentence.splitlines()[-1] if sentence else message)[:_LONGEST]


def required(value: tf.Tensor, condition: tf.Tensor, sentence: str) -> tf.Tensor:
    """The value unchanged; if the condition, bool [], is false, the request is refused with the
    sentence."""
    # Everything computed from the returned tensor waits for the check. Otherwise a lookup might
    # fail first, with its own message.
    with tf.control_dependencies([tf.debugging.Assert(condition, [sentence])]):
        return tf.identity(value)


def same_rows(**inputs: tf.Tensor) -> list[tf.Tensor]:
    """Inputs [B, ...] by name; a request is refused if their numbers of rows differ, or if there
    are no rows.
    """
    counts = [tf.shape(each)[0] for each in inputs.values()]
    are_same = tf.reduce_all([count == counts[0] for count in counts]) & (counts[0] > 0)
    have = "at least one row" if len(counts) == 1 else "the same number of rows, at least one"
    sentence = f"{', '.join(inputs)} must have {have}"
    return [required(each, are_same, sentence) for each in inputs.values()]


def zero_or_one(tensor: tf.Tensor, name: str) -> tf.Tensor:
    """The input with this name, int32; a request with values other than 0 and 1 is refused."""
    return required(tensor, tf.reduce_all((tensor == 0) | (tensor == 1)), f"{name} must be 0 or 1")


def checked_tokens(
    input_word_ids: tf.Tensor,
    input_mask: tf.Tensor,
    input_type_ids: tf.Tensor,
    config: AlbertConfig,
    shortest: int = 1,
) -> dict[str, tf.Tensor]:
    """The three inputs, int32 [..., S], by name. A request is refused if an id, type or mask is out
    of range for a model of `config`, if S is below `shortest` or above the number of positions, or
    if the shapes differ.
    """
    vocab_size, num_types = config.vocab_size, config.type_vocab_size
    longest, shape = config.max_position_embeddings, tf.shape(input_word_ids)
    is_word = tf.reduce_all((input_word_ids >= 0) & (input_word_ids < vocab_size))
    is_type = tf.reduce_all((input_type_ids >= 0) & (input_type_ids < num_types))
    sentence = f"input_word_ids must be from 0 to {vocab_size - 1}"
    words = required(input_word_ids, is_word, sentence)
    words = required(
        words,
        tf.reduce_all(shape > 0) & (shape[-1] >= shortest) & (shape[-1] <= longest),
        f"input_word_ids must have at least one row, of {shortest} to {longest} ids",
    )
    are_alike = [tf.shape(each) == shape for each in (input_mask, input_type_ids)]
    message = "input_word_ids, input_mask and input_type_ids must have one shape"
    return {
        "input_word_ids": required(words, tf.reduce_all(are_alike), message),
        "input_mask": zero_or_one(input_mask, "input_mask"),
        "input_type_ids": required(
            input_type_ids, is_type, f"input_type_ids must be from 0 to {num_types - 1}"
        ),
    }
