"""Models of one layer: a run is the same for any depth, and most of its time goes into tracing."""

from __future__ import annotations

import pytest

from albert_tf.config import AlbertConfig


@pytest.fixture
def tiny_config(tiny_config) -> AlbertConfig:
    return tiny_config.replace(num_hidden_layers=1)
