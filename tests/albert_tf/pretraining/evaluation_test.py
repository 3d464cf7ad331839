"""Held-out evaluation of pre-training beside its baselines."""

import re
import shutil

import pytest
import tensorflow as tf

from albert_tf.checkpoints import huggingface, native
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertPretrainer
from albert_tf.pretraining import HeldOut, evaluate_model, evaluate_run, evaluation
from albert_tf.training import run_folder
from albert_tf.training.devices import Devices
from data_pipeline import errors
from data_pipeline.records.record_folder import read_manifest

DEVICES = Devices(tf.distribute.OneDeviceStrategy("CPU:0"), packed=True, is_fast=False)


@pytest.fixture
def held_out(work) -> HeldOut:
    return HeldOut([str(work / "sop"), str(work / "nsp")], batch_size=8)


@pytest.fixture
def config(work) -> AlbertConfig:
    return AlbertConfig.from_json_file(str(work / "config.json"))


@pytest.fixture
def manifest(work) -> dict:
    return read_manifest(str(work / "sop"))


@pytest.fixture
def fingerprint(manifest) -> dict:
    """What a run, or a model, must have in common with the records."""
    return {"vocab_fingerprint": manifest["vocab_fingerprint"]}


def test_a_model_is_evaluated_on_both_objectives(
    held_out, config, work, manifest, fingerprint, tmp_path, capsys
):
    native.save(AlbertPretrainer(config), str(tmp_path / "model"), fingerprint)
    figures = evaluate_model(str(tmp_path / "model"), held_out, DEVICES, manifest)
    assert {"masked_lm_perplexity", "sentence_order_loss", "next_sentence_loss"} <= set(figures)
    first, second = capsys.readouterr().out.split("Held-out evaluation on ")[1:]
    assert first.startswith(f"{work / 'sop'}\n") and second.startswith(f"{work / 'nsp'}\n")
    assert re.search(rf"masked_lm_loss +{figures['masked_lm_loss']:.4f} ", first)
    assert "sentence_order_accuracy" in first and "next_sentence_accuracy" not in first
    assert "next_sentence_accuracy" in second and "masked_lm_loss" not in second


def test_a_model_of_another_format_is_evaluated_like_its_folder(
    held_out, config, work, fingerprint, tmp_path
):
    model = AlbertPretrainer(config)
    native.save(model, str(tmp_path / "native"), fingerprint)
    huggingface.save(model, str(tmp_path / "other"))
    shutil.copy(work / "vocabulary" / "spiece.model", tmp_path / "other")
    figures, others = (
        evaluate_model(str(tmp_path / name), held_out, DEVICES) for name in ("native", "other")
    )
    assert others == pytest.approx(figures, rel=1e-6)


def test_the_weights_of_the_package_want_records_of_their_vocabulary(held_out):
    with pytest.raises(errors.UserError, match="vocabulary of .* has .* pieces, the model's"):
        evaluate_model("albert-small-en", held_out, DEVICES)


def test_models_that_cannot_be_evaluated(held_out, config, tmp_path):
    native.save(AlbertClassifier(config, 2), str(tmp_path / "classifier"), {})
    with pytest.raises(UserError, match="holds a model for classification, not for pretraining"):
        evaluate_model(str(tmp_path / "classifier"), held_out, DEVICES)
    native.save(AlbertPretrainer(config), str(tmp_path / "other"), {"vocab_fingerprint": "f" * 64})
    with pytest.raises(errors.UserError, match="was made with another vocabulary"):
        evaluate_model(str(tmp_path / "other"), held_out, DEVICES)


def test_folders_that_cannot_be_held_out(work):
    with pytest.raises(UserError, match="--eval_data is missing"):
        HeldOut([])
    with pytest.raises(UserError, match="two folders with the sentence objective 'sop'"):
        HeldOut([str(work / "sop")] * 2)


@pytest.mark.parametrize(
    ("settings", "other", "message"),
    [
        ({}, {}, "no checkpoint appeared in .* within --eval_timeout=0.0"),
        ({}, {"task": "rte"}, "is a fine-tuning run.* --mode=eval of run_finetun"),
        ({"ema_decay": 0.5}, {}, "is a run of --ema_decay=0.5, whose averages"),
    ],
)
def test_runs_that_cannot_be_evaluated(
    held_out, config, fingerprint, tmp_path, settings, other, message
):
    run_folder.claim(str(tmp_path), config, settings, {**fingerprint, **other}, False).close()
    with pytest.raises(UserError, match=message):
        evaluate_run(str(tmp_path), held_out, DEVICES, 10, 0.0)


def test_a_scaled_run_elsewhere(
    config, work, fingerprint, tmp_path, result_of, fast_choice, monkeypatch
):
    """Its last step is the recipe's, and without training records baselines are the held-out's."""
    run_folder.claim(str(tmp_path), config, {}, fingerprint, False).close()
    last_steps = []

    def evaluate(model, evaluator, run_dir, last_step, timeout):
        last_steps.append(last_step)
        return dict.fromkeys(evaluator.metrics, 0.5)

    monkeypatch.setattr(evaluation, "evaluate_checkpoints", evaluate)
    result = result_of(
        "albert_tf.run_pretraining", "--mode=continuous_eval", "--distribution=one_device",
        f"--output_dir={tmp_path}", f"--eval_data={work / 'sop'}", "--num_train_steps=10",
        "--recipe_batch_size=64", "--train_batch_size=16",
    )  # fmt: skip
    assert result.returncode == 0 and last_steps == [40]
    assert f"on {work / 'sop'}, baselines of these records\n" in result.stdout


def test_the_last_figures_of_a_run(held_out, config, fingerprint, tmp_path, monkeypatch, capsys):
    run_folder.claim(str(tmp_path), config, {}, fingerprint, False).close()
    asked = []

    def evaluate(model, evaluator, *others):
        asked.append((type(model), model.config, model.packed, *others))
        return dict.fromkeys(evaluator.metrics, 0.25)

    monkeypatch.setattr(evaluation, "evaluate_checkpoints", evaluate)
    figures = evaluate_run(str(tmp_path), held_out, DEVICES, 10, 7.0)
    assert asked == [(AlbertPretrainer, config, True, str(tmp_path), 10, 7.0)]
    assert set(figures.values()) == {0.25} and "0.2500" in capsys.readouterr().out


def test_records_that_are_longer_than_the_positions(held_out, config):
    model = AlbertPretrainer(config.replace(max_position_embeddings=8))
    with pytest.raises(UserError, match="is longer than the model's 8 positions"):
        held_out.evaluator(model, None)


def test_other_records_have_another_hash_and_a_copy_the_same(held_out, work, tmp_path):
    (tmp_path / "moved").symlink_to(work)
    moved = [str(tmp_path / "moved" / name) for name in ("sop", "nsp")]
    assert held_out.sha256() == HeldOut(moved).sha256()
    assert held_out.sha256() != HeldOut([str(work / "sop")]).sha256()
