"""The values that a field of AlbertConfig may have."""

from __future__ import annotations

from typing import Any

from albert_tf.errors import UserError

# A stack is walked layer by layer, in many places: of 10^9 layers nothing would ever be said.
_MOST = {"num_hidden_layers": 10_000, "inner_group_num": 10_000}


def check_field(name: str, kind: type, value: Any) -> None:
    """Raises UserError unless `value` has the kind of the field and lies in its range."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is bool:
        valid, expected = isinstance(value, bool), "true or false"
    elif kind is str:
        valid, expected = isinstance(value, str), "a string"
    elif kind is int:
        limit = _MOST.get(name, 2**31 - 1)  # Ids and shapes are int32.
        valid, expected = type(value) is int and 0 < value <= limit, "a positive integer"
        if type(value) is int and value > limit:
            expected = f"at most {limit:,}"
    elif name.endswith("_prob"):
        valid, expected = is_number and 0 <= value < 1, "a probability in [0, 1)"
    else:
        # float32 ends there.
        valid, expected = is_number and 0 < value < 2.0**128, "a positive number"
    if not valid:
        raise UserError(f"{name} must be {expected}, not {value!r}.")
