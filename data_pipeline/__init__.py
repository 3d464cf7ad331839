"""Text to TFRecord to tf.data: tokenizing, pre-training records and inputs for fine-tuning.

User code imports from here. Names are imported lazily, on first use, since most programs need only
some of them, and some programs do not need TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import Any

from data_pipeline import quiet

_HOMES = {
    "PretrainingSettings": "data_pipeline.pretraining.settings",
    "Split": "data_pipeline.finetuning.examples",
    "TextExample": "data_pipeline.finetuning.examples",
    "load_tokenizer": "data_pipeline.tokenizers.loading",
    "pretraining_batches": "data_pipeline.pretraining.without_records.dataset",
    "pretraining_examples": "data_pipeline.pretraining.without_records.dataset",
    "read_dataset": "data_pipeline.finetuning.datasets",
    "write_records": "data_pipeline.pretraining.writer",
}

__all__ = sorted(_HOMES)

quiet.prepare_if_program()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
