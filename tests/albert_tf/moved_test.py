"""Names that have moved: their old places still give them, with a warning."""

import importlib

import pytest

from albert_tf.moved import MOVED


@pytest.mark.parametrize(
    ("old", "name"), [(module, name) for module, names in MOVED.items() for name in names]
)
def test_an_old_place(old, name):
    new = MOVED[old][name]
    with pytest.warns(FutureWarning, match=f"{old}.{name} is now {new}"):
        found = getattr(importlib.import_module(old), name)
    assert f"{found.__module__}.{found.__qualname__}" == new


def test_other_names_are_not_there():
    with pytest.raises(ImportError, match="cannot import name 'Task'"):
        from albert_tf.finetuning.spec import Task  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="albert_tf.finetuning.nothing"):
        importlib.import_module("albert_tf.finetuning.nothing")
