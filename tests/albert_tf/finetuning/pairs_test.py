"""Runs of the task of pairs: interrupted, on two devices, and what is made of their folders."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

from albert_tf import SentenceEmbedder
from albert_tf.checkpoints import native
from albert_tf.distillation.teacher import Distillation
from albert_tf.errors import UserError
from albert_tf.finetuning import TaskData
from albert_tf.finetuning.finetuned import load_finetuned, predict
from albert_tf.finetuning.runs.ensemble import EnsembleSettings, run_ensemble
from albert_tf.finetuning.runs.run_files import outputs_path, read_outputs
from albert_tf.finetuning.tasks.table import TASKS, Pairs, own_pairs
from albert_tf.training.devices import Devices
from data_pipeline import read_dataset
from export.tasks import export_model
from tests.finetuning_files import read_answers
from tests.run_results import check_goes_on, check_tensors

LAST = f"last_model/{native.WEIGHTS_PREFIX}"
PAIRS = {"pair": "pair", "label": None}
NUMBERS = {"pair": "pair", "is_regression": True}


@pytest.fixture
def rows(few_words):
    texts = [" ".join(few_words[n : n + 4 + n % 3]) for n in range(12)]
    pairs = zip(texts, [*texts[1:], texts[0]])
    return [
        {"text": text, "pair": pair, "label": n % 5 / 4} for n, (text, pair) in enumerate(pairs)
    ]


@pytest.fixture
def train(tune, rows):
    """(name, columns to train on and to be scored by, dropout, **settings) -> the only result."""

    def run(name, training, dev=PAIRS, dropout=0.0, **settings):
        columns = {"train": training, "dev": dev}
        splits = {split: read_dataset(rows, split, **named) for split, named in columns.items()}
        settings |= {"hidden_dropout": dropout, "attention_dropout": dropout}
        (result,) = tune(name, "pairs", splits, learning_rate=0.002, **settings)
        return result

    return run


@pytest.mark.usefixtures("eager")
def test_single_texts_hidden_anew_in_every_update_go_on_with_the_same_bits(train, tmp_path):
    again = functools.partial(train, "run", {"label": None}, dropout=0.1, num_train_steps=4)
    first = again()
    assert first.key == "mean_reciprocal_rank" and 0 < first.best.metrics[first.key] <= 1
    check_goes_on(again, first, tmp_path / "run")
    kept = native.read_metadata(str(tmp_path / "run" / "model"))
    assert (kept["pair_loss"], kept["text_mask_prob"]) == ("in_batch", 0.3)
    with pytest.raises(UserError, match="pair_loss was|text_mask_prob was|examples was"):
        train("run", PAIRS, dropout=0.1, num_train_steps=4)


@pytest.mark.table
def test_labels_on_two_devices_as_on_one(train, tmp_path, two_devices, eagerly):
    with eagerly():
        assert train("one", NUMBERS, NUMBERS).key == "spearman"
    devices = Devices(two_devices, packed=True, is_fast=False)
    train("two", NUMBERS, NUMBERS, devices=devices)
    check_tensors(tmp_path / "two" / LAST, tmp_path / "one" / LAST, 1e-5)


def test_a_replica_compares_its_own_texts_as_a_part_of_a_batch_does(
    train, tmp_path, two_devices, eagerly
):
    with eagerly():
        train("parts", PAIRS, parts=2)
        train("whole", PAIRS)
    train("two", PAIRS, devices=Devices(two_devices, packed=True, is_fast=False))
    check_tensors(tmp_path / "two" / LAST, tmp_path / "parts" / LAST, 1e-5)
    with pytest.raises(AssertionError):  # A whole batch has more texts to tell apart.
        check_tensors(tmp_path / "whole" / LAST, tmp_path / "parts" / LAST, 1e-5)


@pytest.mark.usefixtures("eager")
def test_the_folder_is_an_embedder_and_is_exported(train, tmp_path, rows, one_device):
    train("run", PAIRS)
    run, texts = str(tmp_path / "run"), [[row[name] for row in rows] for name in ("text", "pair")]
    embed = SentenceEmbedder(run)
    assert embed.pooling.mode == "mean"
    split = read_dataset(rows, "predict", **PAIRS)
    finetuned = load_finetuned(f"{run}/model", TASKS["pairs"], one_device)
    data = TaskData(splits={"dev": read_dataset(rows, "dev", **PAIRS), "predict": split})
    found = predict(finetuned, data, ["dev", "predict"], 4, run)
    stored = {name: read_outputs(outputs_path(run, name, "best"))[0] for name in found}
    assert set(stored["dev"]) == {"cosines", "reciprocal_ranks"}
    assert set(stored["predict"]) == {"cosines"}  # However the split before is scored.
    cosines = embed.similarity(*texts)
    np.testing.assert_allclose(found["predict"].values, cosines, atol=1e-5)
    table = read_answers(tmp_path / "run" / "predictions" / "pairs_predict.tsv")
    assert [row["text_b"] for row in table] == texts[1]
    written = [float(row["prediction"]) for row in table]
    np.testing.assert_allclose(written, cosines, atol=1e-5)
    # Columns of other names are pairs, too.
    load_finetuned(f"{run}/model", own_pairs(Pairs(pair_column="other")), None)
    both = EnsembleSettings(("best", "last"))
    run_ensemble([run], TASKS["pairs"], data, str(tmp_path / "both"), both)
    scored = json.loads((tmp_path / "both" / "ensemble.json").read_text())
    assert scored["key"] == "mean_reciprocal_rank" and scored["results"][0]["metrics"]
    exported = export_model(f"{run}/model", str(tmp_path / "served"), "embedding")
    assert exported.path


def test_a_teacher_is_refused(train):
    with pytest.raises(UserError, match="--teacher=large: --task=pairs trains vectors"):
        train("run", PAIRS, teacher=Distillation("large"))
