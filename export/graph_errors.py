"""Errors of a graph that are the request's doing, and the sentence in them."""

from __future__ import annotations

import tensorflow as tf

REFUSALS = (
    tf.errors.InvalidArgumentError,
    tf.errors.OutOfRangeError,
    tf.errors.UnimplementedError,
    UnicodeDecodeError,  # The message quotes bytes of the request that are not UTF-8.
)
_LONGEST = 300  # Characters of a reason that are told.


def reason(error: Exception) -> str:
    """The sentence in one of REFUSALS: the last line before the name of the graph's node."""
    if isinstance(error, UnicodeDecodeError):
        return "the graph refuses the request, which holds bytes that are not UTF-8"
    message = str(getattr(error, "message", error))
    told = message.split("[[{{node")[0].strip()
    # It may quote a value of the request, however long that is.
    return (told.splitlines()[-1] if told else message)[:_LONGEST]
