"""Moved modules: for one release, their old names can still be imported, with a warning."""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from types import ModuleType
from typing import Any

# Old module -> its documented names -> the new place of each.
MOVED = {
    "albert_tf.encoder": {"AlbertEncoder": "albert_tf.models.encoder.AlbertEncoder"},
    "albert_tf.fast_switch": {"choose": "albert_tf.machine.fast_switch.choose"},
    "albert_tf.preprocessor": {
        "AlbertPreprocessor": "albert_tf.text.preprocessor.AlbertPreprocessor",
    },
    "albert_tf.presets": {"get_preset": "albert_tf.pretrained.presets.get_preset"},
    "albert_tf.replaced_tokens": {
        "ReplacedTokenPretrainer": "albert_tf.models.replaced_tokens.ReplacedTokenPretrainer",
    },
    "albert_tf.tasks": {"PretrainingTask": "albert_tf.models.objectives.PretrainingObjective"},
    "albert_tf.finetuning.spec": {"DataSource": "albert_tf.finetuning.tasks.base.TaskData"},
    "albert_tf.finetuning.text_tasks": {
        "classification": "albert_tf.finetuning.tasks.texts.ClassificationTask",
        "regression": "albert_tf.finetuning.tasks.texts.RegressionTask",
    },
    "albert_tf.finetuning.choice_tasks": {
        "multiple_choice": "albert_tf.finetuning.tasks.choices.MultipleChoiceTask",
    },
}


def _at_its_new_place(old: str, name: str) -> Any:
    """`module.__getattr__` of an old module."""
    if name not in MOVED[old]:
        raise AttributeError(f"module {old!r} has no attribute {name!r}")
    new = MOVED[old][name]
    warnings.warn(f"{old}.{name} is now {new}", FutureWarning, stacklevel=2)
    module, _, new_name = new.rpartition(".")
    return getattr(importlib.import_module(module), new_name)


class _OldModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of MOVED if Python has found no file with their name."""

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = functools.partial(_at_its_new_place, module.__name__)


def install() -> None:
    """Makes the old module names importable."""
    if not any(isinstance(finder, _OldModules) for finder in sys.meta_path):
        sys.meta_path.append(_OldModules())
