"""The fields of a manifest that readers of pre-training records need, and the files next to it."""

from __future__ import annotations

import dataclasses
from typing import Any

from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.statistics import RecordStatistics
from data_pipeline.records import record_folder
from data_pipeline.tokenizers import file_names
from data_pipeline.tokenizers.base import Tokenizer


def manifest_fields(
    files: list[dict[str, Any]], settings: PretrainingSettings, tokenizer: Tokenizer
) -> dict[str, Any]:
    """The fields that readers need; `files` are the manifest's entries of the shards."""
    return {
        "num_records": sum(entry["num_records"] for entry in files),
        "num_shards": len(files),
        "files": files,
        "masking": settings.masking,
        "max_seq_length": settings.max_seq_length,
        "max_predictions": settings.max_predictions_per_seq,
        "vocab_size": tokenizer.vocab_size,
        "vocab_fingerprint": tokenizer.fingerprint,
        "vocab_file": tokenizer.STORED_NAME,
        "label_counts_file": record_folder.LABEL_COUNTS_FILE,
        "tokenizer": dataclasses.asdict(tokenizer.settings),
    }


def extra_files(tokenizer: Tokenizer, statistics: RecordStatistics) -> dict[str, bytes]:
    """The content of the files next to the records, by name: vocabulary, settings, label counts."""
    return {
        tokenizer.STORED_NAME: tokenizer.content(),
        file_names.SETTINGS: tokenizer.settings_json(),
        record_folder.LABEL_COUNTS_FILE: statistics.label_counts_json(),
    }
