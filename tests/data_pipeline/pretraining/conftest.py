"""Records made with small defaults, and their bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.base import Tokenizer


def create_records(
    source: object,
    folder: object,
    tokenizer: Tokenizer,
    overwrite: bool = False,
    deduplicate: bool = False,
    shard_mb: float = 0.05,
    num_processes: int = 1,
    fast: bool = True,
    **settings: Any,
) -> dict[str, Any]:
    """Makes static records of 64 tokens in one copy, unless the settings say otherwise."""
    defaults = {"max_seq_length": 64, "dupe_factor": 1, "masking": "static"}
    return create_pretraining_data(
        Corpus(str(source), deduplicate=deduplicate),
        str(folder),
        tokenizer,
        PretrainingSettings(**{**defaults, **settings}),
        shard_mb=shard_mb,
        num_processes=num_processes,
        fast=fast,
        overwrite=overwrite,
    )


@pytest.fixture(scope="session")
def create() -> Callable[..., dict[str, Any]]:
    return create_records


@pytest.fixture(scope="session")
def contents() -> Callable[[object], dict[str, bytes]]:
    """Folder -> the bytes of all its files by name."""
    return lambda folder: {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
