"""Stored weights by name, in any format, and their strict assignment to a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.variable_names import variable_name

_MOST_PROBLEMS = 4  # Problems of one kind that a message lists.
# Patterns, in all formats, for names of parts whose presence or number the configuration decides.
_BLOCKS = re.compile(r"group_\d|albert_layer_groups|embedding_hidden_mapping_in|/projection/")


class Weights(Protocol):
    """The weights in a file or folder."""

    path: str  # For messages.
    shapes: dict[str, list[int]]  # By name.

    def read(self, name: str) -> np.ndarray:
        """The weight of that name, an array of its shape."""


class Allowed(NamedTuple):
    """Regular expressions for names of weights that only the model has, or only the file.

    Attributes:
      missing: our names that may be absent, but only whole layers.
      unused: stored names that may remain unused.
    """

    missing: Sequence[str] = ()
    unused: Sequence[str] = ()


NOTHING = Allowed()


def assign(
    variables: Sequence[tf.Variable],
    weights: Weights,
    stored_name: Callable[[str], tuple[str, bool]],
    allowed: Allowed = NOTHING,
) -> list[str]:
    """Assigns stored weights to variables; returns our names of variables that were not assigned.

    `stored_name`: our name -> (the stored name, whether its transpose is stored). A UserError lists
    missing, unused and misshapen variables; nothing is assigned then.
    """
    found, kept, read = [], [], set()
    misshapen, missing = [], []
    for variable in variables:
        ours = variable_name(variable)
        theirs, transposed = stored_name(ours)
        read.add(theirs)
        expected = list(variable.shape[::-1] if transposed else variable.shape)
        stored = weights.shapes.get(theirs)
        if stored == expected:
            found.append((variable, theirs, transposed))
        elif stored is not None:
            misshapen.append(f"{theirs} has shape {stored}, the model needs {expected}")
        elif _matches(ours, allowed.missing):
            kept.append(ours)
        else:
            missing.append(f"{theirs}, shape {expected}")
    # A whole layer may be missing, and is initialized. Half a layer means a damaged file.
    layers = {variable_name(variable).rpartition("/")[0] for variable, _, _ in found}
    missing += [stored_name(ours)[0] for ours in kept if ours.rpartition("/")[0] in layers]
    others = sorted(weights.shapes.keys() - read)
    unused = [name for name in others if not _matches(name, allowed.unused)]
    if misshapen or missing or unused:
        problems = {"misshapen": misshapen, "missing": missing, "unused": unused}
        lines = [line for kind, found_ones in problems.items() for line in _some(kind, found_ones)]
        remedy = _remedy(bool(found), misshapen, missing, unused)
        raise UserError(
            "\n".join([f"checkpoint {weights.path} does not fit the model:", *lines, remedy])
        )
    # Read and check all values before assigning the first, so that an error changes nothing.
    values = [weights.read(theirs) for _, theirs, _ in found]
    for (_, theirs, _), value in zip(found, values):
        if not np.isfinite(value).all():
            raise UserError(
                f"checkpoint {weights.path} holds numbers in {theirs} that are not finite. The "
                "file is damaged, or its training had diverged: take an earlier one."
            )
    for (variable, _, transposed), value in zip(found, values):
        variable.assign(value.T if transposed else value)
    return kept


def _some(kind: str, problems: Sequence[str]) -> list[str]:
    """One line for each of the first problems of a kind, and one with the number of the rest."""
    lines = [f"  {kind}: {problem}" for problem in problems[:_MOST_PROBLEMS]]
    others = len(problems) - len(lines)
    return [*lines, f"  {kind}: {others} more"] if others else lines


def _remedy(
    any_found: bool, misshapen: Sequence[str], missing: Sequence[str], unused: Sequence[str]
) -> str:
    """A sentence of advice about weights that do not fit."""
    if misshapen or (any_found and _BLOCKS.search(" ".join([*missing, *unused]))):
        return "Pass the configuration that the checkpoint was made with."
    if not any_found:
        return "It has none of the weights of the model: pass weights of an ALBERT."
    if missing:
        return (
            "It lacks a part that this model needs for its answers: pass weights of a model "
            "that has it, or train a model that starts with these weights."
        )
    return "It has parts that this model lacks: use the class of model that the weights belong to."


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(re.search(pattern, name) for pattern in patterns)
