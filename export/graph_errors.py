"""Errors of a graph that are the request's doing, and the sentence in them."""

from __future__ import annotations

import tensorflow as tf

REFUSALS = (
    tf.errors.InvalidArgumentError,
    tf.errors.OutOfRangeError,
    tf.errors.UnimplementedError,
)


def reason(message: str) -> str:
    """The line of a graph's error message with the reason: the last one before the node's name."""
    told = message.split("[[{{node")[0].strip()
    return told.splitlines()[-1] if told else message
