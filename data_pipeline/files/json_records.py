"""Dataclasses as JSON files with a version: written field by field, read with their types checked.

class Score: step: int; metrics: Mapping[str, float | None]
Score(9, {"f1": 0.5}) -> {"version": 1, "step": 9, "metrics": {"f1": 0.5}}
"""

from __future__ import annotations

import collections.abc
import dataclasses
import math
import types
import typing
from typing import Any, TypeVar

from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files

T = TypeVar("T")
_NAMES = {str: "a text", int: "an integer", float: "a finite number", bool: "true or false"}


def write(path: str, version: int, record: Any) -> None:
    """Writes a dataclass, which may be nested, atomically."""
    atomic_files.write_json(path, {"version": version, **dataclasses.asdict(record)})


def read(path: str, version: int | None, kind: type[T], remedy: str) -> T:
    """Reads the dataclass in a file that `write` wrote, or, with version None, in a file without a
    version. Fields have JSON types, dataclasses, Sequences (which become tuples) and Mappings of
    these, or None; a field with a default may be missing. Anything else is a UserError that names
    the field and ends with `remedy`, a sentence for the user.
    """
    values = atomic_files.read_json(path)
    if version is not None:
        found = values.pop("version", None) if isinstance(values, dict) else None
        if found != version:
            raise UserError(
                f"{path} should be an object of version {version}; received version {found}. "
                f"{remedy}"
            )
    try:
        return parse(kind, values, "the file")
    except UserError as error:
        raise UserError(f"{path}: {error} {remedy}") from None


def parse(kind: Any, value: Any, name: str) -> Any:
    """Converts a JSON value to a type, or raises UserError; `name` names the value in errors."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (each for each in arguments if each is not types.NoneType)
        return None if value is None else parse(inner, value, name)
    if origin is collections.abc.Sequence:
        _check(type(value) is list, name, "a list", value)
        return tuple(parse(arguments[0], each, f"{name}[{i}]") for i, each in enumerate(value))
    if origin is collections.abc.Mapping:
        _check(type(value) is dict, name, "an object", value)
        return {key: parse(arguments[1], each, f"{name}.{key}") for key, each in value.items()}
    if dataclasses.is_dataclass(kind):
        return _parse_fields(kind, value, name)
    # `type(value)`, because isinstance(True, int) holds. An integer is accepted as a float.
    is_number = kind is float and type(value) in (int, float) and math.isfinite(value)
    _check(is_number or (type(value) is kind and kind is not float), name, _NAMES[kind], value)
    return value


def _parse_fields(kind: Any, value: Any, name: str) -> Any:
    _check(type(value) is dict, name, "an object", value)
    fields = dataclasses.fields(kind)
    names = [field.name for field in fields]
    missing = [each.name for each in fields if each.name not in value and not _has_default(each)]
    unknown = [each for each in value if each not in names]
    if missing or unknown:
        raise UserError(
            f"{name} should have the fields {', '.join(names)}; missing: "
            f"{', '.join(missing) or 'none'}, unknown: {', '.join(unknown) or 'none'}."
        )
    hints = typing.get_type_hints(kind)
    return kind(**{each: parse(hints[each], found, each) for each, found in value.items()})


def _has_default(field: dataclasses.Field) -> bool:
    return field.default is not field.default_factory  # Both are MISSING if there is none.


def _check(is_right: bool, name: str, expected: str, received: Any) -> None:
    if not is_right:
        raise UserError(f"{name} should be {expected}; received {received!r:.80}.")
