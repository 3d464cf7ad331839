"""Fine-tuning from Python: what it writes, and what it starts from; on one device and two."""

import json

import numpy as np
import pytest

from albert_tf.checkpoints import huggingface, native
from albert_tf.errors import UserError
from albert_tf.finetuning import training
from albert_tf.finetuning.evaluation import ScoreEvaluator
from albert_tf.finetuning.runs.results import read_results
from albert_tf.finetuning.tasks.texts import ClassificationTask
from albert_tf.finetuning.training import FineTuningSettings
from albert_tf.keras_compat import keras
from albert_tf.metrics import SCORERS
from albert_tf.models import AlbertClassifier
from albert_tf.training import InitialModel
from albert_tf.training.devices import Devices
from albert_tf.variable_names import variable_name
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.run_results import check_tensors

LAST = f"last_model/{native.WEIGHTS_PREFIX}"
LABELS = ("long", "short")
TASK = ClassificationTask("mine", None, LABELS, SCORERS["cola"])
WITHOUT_DROPOUT = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "classifier_dropout": 0.0}


@pytest.fixture
def train(tune, small_splits):
    """(name, **settings) -> the results of a run of TASK without dropout."""
    return lambda name, **settings: tune(name, TASK, small_splits, **WITHOUT_DROPOUT, **settings)


@pytest.mark.usefixtures("eager")
def test_a_run_and_what_it_writes(train, tmp_path, small_splits, capsys, monkeypatch):
    evaluate, evaluations = ScoreEvaluator.__call__, []
    monkeypatch.setattr(
        ScoreEvaluator, "__call__", lambda self: [evaluations.append(self), evaluate(self)][1]
    )
    (result,) = train("run", num_train_steps=4)
    # Each checkpoint, and the best one again, unless it is the last.
    assert len(evaluations) == 2 + (result.best.step != 4)
    shown = capsys.readouterr().out
    assert shown.startswith("Fine-tuning: mine\n") and "4 (0.8 passes over 20 examples)" in shown
    assert "2: long, short" in shown and "0.69 (ln 2)" in shown and " without padding)" in shown
    assert f"Model: {tmp_path}/run/model\n" in shown
    assert "Next: python -m export.run_export --model_dir=" in shown and "| mine | dev |" in shown
    assert "--mode=predict" not in shown  # The program does not know the task.
    assert read_results(str(tmp_path / "run")) == [result]
    assert (result.task, result.split, result.num_examples, result.seed) == ("mine", "dev", 9, 5)
    assert result.key == "matthews_corrcoef" and result.preset is None
    assert result.last.step == 4 and result.best.step in (2, 4)
    assert result.data_sha256 == {name: split.sha256() for name, split in small_splits.items()}
    best, last = (
        native.read_metadata(str(tmp_path / "run" / name)) for name in ("model", "last_model")
    )
    assert best["labels"] == ["long", "short"] and best["finetuned_on"] == "mine"
    assert best["max_seq_length"] == 32 and best["step"] == result.best.step
    assert best["metrics"]["accuracy"] == result.best.metrics["accuracy"]
    assert last["metrics"]["accuracy"] == result.last.metrics["accuracy"]
    kept = np.load(tmp_path / "run" / "outputs" / "dev.best.npz")
    accuracy = np.mean(
        [
            LABELS[row.argmax()] == e.label
            for row, e in zip(kept["logits"], small_splits["dev"].examples)
        ]
    )
    assert accuracy == pytest.approx(result.best.metrics["accuracy"])
    assert (tmp_path / "run" / "outputs" / "dev.last.npz").exists()
    table = (tmp_path / "run" / "predictions" / "mine_dev.tsv").read_text().splitlines()
    assert table[0].split("\t") == ["id", "text", "label", "prediction", "p(long)", "p(short)"]
    assert len(table) == 10
    small_splits["dev"].examples.pop()  # Another model may be the best on what is left.
    with pytest.raises(UserError, match="scored_examples was"):
        train("run", num_train_steps=4)


@pytest.mark.usefixtures("eager")
def test_the_preset_is_known_from_task_to_task(train, tmp_path):
    """Also of a run, whose folder stands for its best model."""
    (first,) = train("first", num_train_steps=1)
    path = tmp_path / "first" / "model" / native.METADATA_FILE
    metadata = json.loads(path.read_text())
    assert first.preset is None and "preset" not in metadata
    del metadata["sha256"]
    path.write_text(json.dumps({**metadata, "preset": "albert-base-v2"}))
    start = InitialModel(init_checkpoint=str(tmp_path / "first"))
    (second,) = train("second", start=start, num_train_steps=1)
    assert second.preset == "albert-base-v2"
    assert (first.init_sha256, second.init_sha256) == (None, first.best.model_sha256)
    assert training._preset_of(InitialModel(preset="albert-base-v2")) is None  # From scratch.
    # Examples in memory have no columns, whatever theirs are by default.
    assert "pair_column" not in metadata["data_settings"]
    for name in ("model", "last_model"):
        kept = native.read_metadata(str(tmp_path / "second" / name))
        assert kept["preset"] == "albert-base-v2"


def test_two_devices_equal_one(train, tmp_path, two_devices, eagerly):
    """At a low rate, a share of which is what AdamW makes of last bits of gradients near 0."""
    settings = {"learning_rate": 0.002, "num_train_steps": 3}
    with eagerly():
        train("one", **settings)
    train("two", devices=Devices(two_devices, packed=True, is_fast=False), **settings)
    check_tensors(tmp_path / "two" / LAST, tmp_path / "one" / LAST, 1e-5)
    one, two = (np.load(tmp_path / name / "outputs" / "dev.last.npz") for name in ("one", "two"))
    np.testing.assert_allclose(one["logits"], two["logits"], atol=1e-5)


def test_an_intermediate_task_gives_its_encoder(config_model, tmp_path, vocab_file, one_device):
    """Encoder and pooler, and the output layer only when it is asked for."""
    tokenizer = load_tokenizer(vocab_file)
    folder = str(tmp_path / "model")
    native.save(config_model, folder, {"labels": list(LABELS)}, vocab_file, {})
    keras.utils.set_random_seed(11)
    for init_head in (False, True):
        settings = FineTuningSettings(init_head=init_head, lengths=LengthSettings(32))
        start = InitialModel(init_checkpoint=folder)
        model = training.new_model(start, TASK, tokenizer, LABELS, settings, one_device)
        for given, found in zip(config_model.variables, model.variables):
            name = variable_name(found)
            assert name == variable_name(given)
            is_kept = name.startswith("encoder/") or name.endswith("bias") or init_head
            assert np.array_equal(given, found) == is_kept, name
    short = FineTuningSettings(lengths=LengthSettings(32))
    three = training.new_model(start, TASK, tokenizer, ("a", "b", "c"), short, one_device)
    assert three.num_classes == 3
    settings = FineTuningSettings(init_head=True, lengths=LengthSettings(32))
    with pytest.raises(UserError, match="on long, short, and the examples have a, b, c"):
        training.new_model(start, TASK, tokenizer, ("a", "b", "c"), settings, one_device)


@pytest.fixture
def config_model(small_model, one_device):
    with one_device.strategy.scope():
        return TASK.new_model(small_model.config(48, 32, "test"), LABELS, 0.1, packed=True)


def test_rates_of_dropout(small_model, vocab_file, one_device):
    def new_model(**rates):
        settings = FineTuningSettings(lengths=LengthSettings(32), **rates)
        given = small_model, TASK, load_tokenizer(vocab_file), LABELS, settings, one_device
        return training.new_model(*given)

    model = new_model(hidden_dropout=0.3, attention_dropout=0.2, classifier_dropout=0.4)
    assert model.config.hidden_dropout_prob == 0.3 and model.dropout_rate == 0.4
    assert model.config.attention_probs_dropout_prob == 0.2
    config = new_model().config
    assert config.hidden_dropout_prob == 0.1 == config.attention_probs_dropout_prob


def test_updates_follow_from_epochs():
    settings = FineTuningSettings(train_batch_size=10, num_train_epochs=2.0)
    assert settings.recipe(57) == (2e-5, 11, 1)
    settings = FineTuningSettings(num_train_steps=7, num_warmup_steps=3)
    assert settings.recipe(57) == (2e-5, 7, 3)
    assert FineTuningSettings(num_train_epochs=0.01).recipe(5).num_train_steps == 1


MNLI = ("contradiction", "entailment", "neutral")


@pytest.fixture
def with_classes(tiny_config, tmp_path):
    """Names of classes -> a Hugging Face folder that has them."""

    def make(*names: str) -> InitialModel:
        huggingface.save(AlbertClassifier(tiny_config, len(names)), str(tmp_path), names)
        return InitialModel(init_checkpoint=str(tmp_path))

    return make


def test_an_output_layer_has_the_same_classes(with_classes):
    for names in (MNLI, ("Contradiction", "Entailment", "Neutral")):
        training.check_head(with_classes(*names), MNLI)
    with pytest.raises(
        UserError, match="was trained on entailment, neutral, contradiction, and the"
    ):
        training.check_head(with_classes("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), MNLI)
    with pytest.raises(UserError, match="--init_checkpoint, which is missing"):
        training.check_head(InitialModel(), MNLI)


def test_an_output_layer_whose_names_say_nothing(with_classes, tmp_path):
    model = with_classes("LABEL_0", "LABEL_1", "LABEL_2")
    training.check_head(model, MNLI)
    config = tmp_path / "config.json"
    values = json.loads(config.read_text())
    assert huggingface.read_labels(str(tmp_path)) == ["LABEL_0", "LABEL_1", "LABEL_2"]
    del values["id2label"]
    config.write_text(json.dumps(values))
    assert huggingface.read_labels(str(tmp_path)) == []
    training.check_head(model, MNLI)
