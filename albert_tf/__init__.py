"""ALBERT for TensorFlow 2: configurations, Keras models, checkpoints and training.

Names are imported lazily, on first use, so that a program can prepare the import of TensorFlow
first. Keras 2 is selected as soon as this package is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from albert_tf import keras_choice, moved

try:
    from data_pipeline.quiet import prepare_if_program
except ModuleNotFoundError:
    _found = importlib.util.find_spec("data_pipeline")
    _folders = (_found.submodule_search_locations if _found else None) or ["A module"]
    raise ImportError(
        f"{_folders[0]} hides the package data_pipeline, a part of albert-tf. Rename that folder, "
        "or start Python in another one."
    ) from None

__version__ = "0.1.0"

_MODULES = {
    "albert_tf.checkpoints.native": ["load_model"],
    "albert_tf.config": ["AlbertConfig"],
    "albert_tf.distillation.objective": ["distill"],
    "albert_tf.distillation.teacher": ["Distillation"],
    "albert_tf.finetuning.training": ["finetune"],
    "albert_tf.keras_compat": ["keras"],
    "albert_tf.models": [
        "AlbertClassifier",
        "AlbertEncoder",
        "AlbertMultipleChoice",
        "AlbertPretrainer",
        "AlbertReplacedTokenDetector",
        "AlbertSentenceEncoder",
        "AlbertSpanLabeler",
        "AlbertSpanLabelerV2",
        "AlbertTokenClassifier",
    ],
    "albert_tf.optimization": ["LAMB", "AdamW", "Muon"],
    "albert_tf.pretrained.loading": ["from_preset", "preset_vocabulary"],
    "albert_tf.pretrained.presets": ["PRESETS", "get_preset"],
    "albert_tf.text.models": ["MaskFiller", "SentenceEmbedder"],
    "albert_tf.text.preprocessor": ["AlbertPreprocessor"],
    "data_pipeline.quiet": ["quiet"],
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)

# These calls must run before TensorFlow is imported. Python runs this file before any other module
# of the package.
prepare_if_program()
keras_choice.prefer_keras_2()
moved.install()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
