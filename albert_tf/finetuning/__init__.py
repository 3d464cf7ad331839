"""Fine-tuning: tasks with labeled examples, from Python or for the programs.

User code with tasks of its own imports from here. A name is looked up when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "SCORERS": "albert_tf.metrics",
    "ClassificationTask": "albert_tf.finetuning.tasks.texts",
    "FineTuningSettings": "albert_tf.finetuning.training",
    "LengthSettings": "data_pipeline.finetuning.features",
    "MultiLabelTask": "albert_tf.finetuning.tasks.texts",
    "MultipleChoiceTask": "albert_tf.finetuning.tasks.choices",
    "RegressionTask": "albert_tf.finetuning.tasks.texts",
    "TaggingTask": "albert_tf.finetuning.tasks.tagging",
    "TaskData": "albert_tf.finetuning.tasks.base",
    "finetune": "albert_tf.finetuning.training",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
