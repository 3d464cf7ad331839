"""Models of one layer: a run is the same for any depth, and most of its time goes into tracing."""

from collections.abc import Callable

import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.training import (
    Experiment,
    LoopSettings,
    ModelFolders,
    OptimizerSettings,
    RunSettings,
    TrainingData,
)


@pytest.fixture(scope="session")
def tiny_config(tiny_config) -> AlbertConfig:
    return tiny_config.replace(num_hidden_layers=1)


@pytest.fixture
def new_experiment(pretraining_data, tmp_path) -> Callable[..., Experiment]:
    """(config, folder, optimizer, loop, batches=made-up ones, **fields) -> an experiment."""
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[PAD]\n")

    def make(
        config: AlbertConfig,
        folder: str,
        optimizer: OptimizerSettings,
        loop: LoopSettings,
        batches: Callable[[int], tf.data.Dataset] = pretraining_data,
        **fields: object,
    ) -> Experiment:
        data = TrainingData(
            name="made-up batches", batches=batches, batch_size=8, seed=3, num_examples=None,
            max_seq_length=12, vocab_size=config.vocab_size, must_not_change={"source": "random"},
        )  # fmt: skip
        return Experiment(
            title="A test",
            objective=PretrainingObjective(AlbertPretrainer(config)),
            data=data,
            settings=RunSettings(str(tmp_path / folder), optimizer, loop),
            models=ModelFolders("best", "last", "loss", False, {}, str(vocabulary), {}),
            flops_per_token=1e3,
            **fields,
        )

    return make
