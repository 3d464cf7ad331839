"""Training steps of every form of task with static shapes, compiled by XLA: the same updates."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import training
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.texts import ClassificationTask
from albert_tf.finetuning.training import FineTuningSettings
from albert_tf.finetuning.training_examples import make_examples
from albert_tf.keras_compat import keras
from albert_tf.metrics import SCORERS
from albert_tf.training import LoopSettings, OptimizerSettings, RunSettings
from albert_tf.training.devices import Devices
from albert_tf.training.steps import Stepper
from data_pipeline.finetuning.batches import finetuning_dataset
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.finetuning_cases import FORMS, LENGTHS, split_of

BATCH = 4
ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


def has_static_shapes(data: tf.data.Dataset) -> bool:
    return all(spec.shape.is_fully_defined() for spec in data.element_spec.values())


@pytest.fixture
def change(work, vocab_file, few_words):
    """Change of the weights by three updates of SGD from the same start, without dropout."""
    config = AlbertConfig.from_json_file(str(work / "config.json")).replace(
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.3,  # Large gradients.
    )
    tokenizer = load_tokenizer(vocab_file)

    def train(task, is_static: bool) -> np.ndarray:
        examples = make_examples(task, split_of(task, few_words, 20), tokenizer, LENGTHS)
        data = finetuning_dataset(examples.features, BATCH, seed=2, static_shapes=is_static)
        if is_static:
            assert has_static_shapes(data)
        keras.utils.set_random_seed(1)
        with ONE_DEVICE.scope():
            model = task.new_model(config, examples.labels, 0.0, packed=False)
            optimizer = keras.optimizers.SGD(0.5)
            optimizer.build(model.trainable_variables)
        before = model.get_weights()
        stepper = Stepper(task.new_objective(model), optimizer, ONE_DEVICE, jit_compile=is_static)
        outcome = stepper.train(iter(stepper.distribute(data)), tf.constant(3))
        assert int(outcome.num_bad) == 0
        return np.concatenate([(a - b).ravel() for a, b in zip(model.get_weights(), before)])

    return train


@pytest.mark.parametrize(
    "name",
    [
        "squad2.0",
        *(
            pytest.param(name, marks=pytest.mark.table)
            for name in ("cola", "copa", "tagging", "squad1.1")
        ),
    ],
)
def test_steps_compile_with_static_shapes(change, name):
    """Varying lengths, and operations one by one, give the same."""
    plain, compiled = (change(FORMS[name], is_static) for is_static in (False, True))
    assert np.linalg.norm(plain) > 0.01
    assert np.linalg.norm(plain - compiled) < 1e-4 * np.linalg.norm(plain)


class Stopped(Exception):
    """The run is described, and not trained."""


@pytest.mark.parametrize("jit_compile", [False, True])
def test_runs_that_are_compiled_have_static_shapes(
    jit_compile, small_model, small_splits, vocab_file, tmp_path, monkeypatch
):
    seen = []

    def run(described, conclude):
        seen.append(described)
        raise Stopped

    monkeypatch.setattr(training, "run_experiment", run)
    run_settings = RunSettings(
        str(tmp_path), OptimizerSettings("adamw", 0.1, 0), LoopSettings(1), jit_compile=jit_compile
    )
    settings = FineTuningSettings(lengths=LENGTHS, train_batch_size=BATCH, vocab_file=vocab_file)
    devices = Devices(ONE_DEVICE, packed=False, is_fast=False)
    task = ClassificationTask("mine", None, ("long", "short"), SCORERS["cola"])
    with pytest.raises(Stopped):
        training.finetune(
            small_model, task, TaskData(splits=small_splits), str(tmp_path), settings, devices,
            lambda recipe: run_settings,
        )  # fmt: skip
    assert has_static_shapes(seen[0].data.batches(start_step=0)) == jit_compile
