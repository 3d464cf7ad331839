"""Classification from Python: trained, scored and used for predictions."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.finetuning import classification
from albert_tf.models import AlbertClassifier
from albert_tf.training import LoopSettings, OptimizerSettings, RunSettings
from albert_tf.training.devices import Devices
from data_pipeline.finetuning.classification import Examples, read_tsv
from data_pipeline.tokenizers.loading import load_tokenizer

DEVICES = Devices(tf.distribute.OneDeviceStrategy("CPU:0"), packed=True, is_fast=False)


def test_a_classifier_is_trained_and_used(work, tmp_path, few_words, capsys):
    rows = [f"{' '.join(few_words[i:][:6])}\t{'ab'[i % 2]}" for i in range(20)]
    (tmp_path / "data.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    examples = read_tsv(str(tmp_path / "data.tsv"))
    tokenizer = load_tokenizer(str(work / "vocabulary" / "spiece.model"))
    encoding = classification.TextEncoding(tokenizer, ["a", "b"], max_seq_length=16)
    data = classification.training_data(examples, encoding, batch_size=4, seed=1)
    assert data.num_examples == 20 and data.must_not_change["labels"] == ["a", "b"]
    with DEVICES.strategy.scope():
        model = AlbertClassifier(AlbertConfig.from_json_file(str(work / "config.json")), 2)
    settings = RunSettings(
        str(tmp_path / "run"), OptimizerSettings("adamw", 0.01, 1), LoopSettings(6, eval_steps=3)
    )
    figures = classification.finetune(model, data, examples, encoding, settings, DEVICES)
    shown = capsys.readouterr().out
    assert shown.startswith("Fine-tuning\n") and "6 (1.2 passes over 20 examples)" in shown
    assert "Best model on" in shown and "--task=classifier" in shown
    assert 0 <= figures["accuracy"] <= 1

    folder = str(tmp_path / "run" / "model")
    best = native.read_metadata(folder)["metrics"]["accuracy"]
    labels, found = classification.probabilities(folder, examples, 8, DEVICES)
    assert labels == ["a", "b"] and found.shape == (20, 2)
    predicted = [labels[index] for index in found.argmax(axis=1)]
    np.testing.assert_allclose(np.mean(np.equal(predicted, examples.labels)), best, atol=1e-6)


def test_scores_beside_always_guessing_the_same(monkeypatch, capsys):
    examples = Examples("dev.tsv", [2, 3, 4], ["one", "two", "three"], None, ["b", "b", "a"])
    scores = np.float32([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    asked = []
    monkeypatch.setattr(
        classification, "probabilities", lambda *given: asked.append(given) or (["a", "b"], scores)
    )
    classification.print_scores("folder", examples, 8, DEVICES)
    title, header, *lines = capsys.readouterr().out.splitlines()
    assert asked == [("folder", examples, 8, DEVICES)]
    assert title == "Best model on dev.tsv, 3 examples" and header.split() == ["model", "baseline"]
    assert [line.split() for line in lines] == [
        ["accuracy", "0.6667", "0.6667", "(majority)"],
        ["macro", "F1", "0.6667", "0.4000", "(majority)"],
        ["Matthews", "correlation", "0.5000", "0.0000", "(majority)"],
    ]


def test_scores_need_labels(tmp_path):
    (tmp_path / "new.tsv").write_text("text\nno label here\n")
    examples = read_tsv(str(tmp_path / "new.tsv"), label_column=None)
    with pytest.raises(UserError, match="new.tsv has no labels, and scores compare with them"):
        classification.print_scores(str(tmp_path / "model"), examples, 8, DEVICES)
