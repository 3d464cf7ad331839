"""Outputs on a whole split, on one device and two, and their scores."""

import dataclasses

import numpy as np
import pytest

from albert_tf.finetuning.evaluation import Predictor, ScoreEvaluator, figure_name
from albert_tf.finetuning.tasks.texts import ClassificationTask
from albert_tf.keras_compat import keras
from albert_tf.metrics import SCORERS
from albert_tf.models import AlbertSpanLabeler
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.loading import load_tokenizer

LABELS = ("long", "short")
TASK = ClassificationTask("mine", None, LABELS, SCORERS["cola"])


@pytest.fixture
def features(small_splits, vocab_file):
    tokenizer = load_tokenizer(vocab_file)
    return TASK.features(small_splits["dev"], tokenizer, LengthSettings(32), LABELS, True)


def new_model(task, config, strategy):
    keras.utils.set_random_seed(3)
    with strategy.scope():
        return task.new_model(config, LABELS, 0.1, packed=True)


@pytest.fixture
def config(small_model, vocab_file):
    return small_model.config(48, 32, "test")


@pytest.mark.parametrize("batch_size", [4, 100])
def test_outputs_are_those_of_each_row(features, config, one_device, two_devices, batch_size):
    model = new_model(TASK, config, one_device.strategy)
    batch = features.batch(np.arange(9), 32)
    expected = model(batch).numpy()
    found = Predictor(model, features, batch_size)()
    assert set(found) == {"logits"}
    np.testing.assert_allclose(found["logits"], expected, atol=1e-5)
    on_two = Predictor(new_model(TASK, config, two_devices), features, batch_size)
    for _ in range(2):
        np.testing.assert_allclose(on_two()["logits"], expected, atol=1e-5)


def test_outputs_for_pieces_are_filled_up(features, config, one_device):
    """A row's batch may be shorter than another's."""
    with one_device.strategy.scope():
        model = AlbertSpanLabeler(config)
    names = ("start_logits", "end_logits")
    longer = dataclasses.replace(features, max_seq_length=40, sequence_outputs=names)
    found = Predictor(model, longer, 3)()
    expected = model(features.batch(np.arange(9), 32))
    for name in names:
        assert found[name].shape == (9, 40)
        np.testing.assert_allclose(found[name][:, :32], expected[name], rtol=1e-5, atol=1e-5)
        assert (found[name][:, 32:] == np.float32(-1e30)).all()


def test_scores_of_splits_have_names(features, config, one_device):
    model = new_model(TASK, config, one_device.strategy)
    evaluator = ScoreEvaluator(TASK, model, {"dev": features, "dev_other": features}, 4)
    names = ("accuracy", "matthews_corrcoef")
    assert evaluator.metrics == (*names, *(f"dev_other_{name}" for name in names))
    figures = evaluator()
    assert tuple(figures) == evaluator.metrics
    assert evaluator.scores["dev"] == evaluator.scores["dev_other"]
    predicted = evaluator.outputs["dev"]["logits"].argmax(axis=1)
    right = [example.label == LABELS[number] for example, number in zip(features.source, predicted)]
    assert figures["accuracy"] == pytest.approx(np.mean(right))
    assert evaluator.predictions["dev"].values == predicted.tolist()


def test_an_undefined_score_is_nan(features, config, one_device):
    task = ClassificationTask("mine", None, LABELS, SCORERS["cola"])
    undefined = {"accuracy": 0.5, "matthews_corrcoef": None}
    object.__setattr__(task, "score", lambda *given: undefined)
    evaluator = ScoreEvaluator(
        task, new_model(task, config, one_device.strategy), {"dev": features}, 9
    )
    figures = evaluator()
    assert figures["accuracy"] == 0.5 and np.isnan(figures["matthews_corrcoef"])
    assert figure_name("dev", "f1", ["dev"]) == "f1"
    assert figure_name("dev_mismatched", "f1", ["dev", "dev_mismatched"]) == "dev_mismatched_f1"
