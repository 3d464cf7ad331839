"""The plateau's trials: their cost, their commands, their starting weights and curves."""

from __future__ import annotations

import dataclasses
import json
import types
from pathlib import Path

import numpy as np
import pytest

from albert_tf.checkpoints import native
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from experiments import plateau
from experiments.plateau import PARTS, Stage, Trial, write_parts
from tests.conformance_cases import BASE

CONFIG = BASE.replace(embedding_size=16, hidden_size=32, num_hidden_layers=4)
VOCABULARY = Path(__file__).parents[1] / "goldens" / "wordpiece" / "vocab.txt"
COLUMNS = "step,split,masked_lm_loss,masked_lm_accuracy,tokens_per_second\n"


def test_trials_of_the_same_layers_read_as_many_tokens():
    read = {
        trial.name: sum(stage.steps * stage.tokens for stage in trial.stages)
        for trial in plateau.TRIALS
        if all(stage.layers == 4 for stage in trial.stages)
    }
    assert len(read) == len(plateau.TRIALS) - 1
    assert set(read.values()) == {800 * 64 * 128}
    assert {trial.start for trial in plateau.TRIALS} == {"", plateau.INFORMED, *PARTS}


@pytest.fixture(name="informed", scope="module")
def fixture_informed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starts") / plateau.INFORMED
    model = AlbertPretrainer(CONFIG)
    for variable in model.variables:
        variable.assign(np.full(variable.shape, 7.0))
    native.save(model, str(folder), {"max_seq_length": 9}, str(VOCABULARY), {"lower": True})
    write_parts(folder)
    return folder


def test_starts_are_random_weights_with_one_change(informed):
    keras.utils.set_random_seed(0)
    random = {each.name: each.numpy() for each in AlbertPretrainer(CONFIG).variables}
    changed = {}
    for part in PARTS:
        model = native.load_model(str(informed.with_name(part)))
        assert native.read_metadata(str(informed.with_name(part)))["max_seq_length"] == 9
        changed[part] = {
            each.name: each.numpy()
            for each in model.variables
            if not np.array_equal(each.numpy(), random[each.name])
        }
    assert {part: len(names) for part, names in changed.items()} == {
        "words": 3,
        "positions": 6,
        "projection": 1,
    }
    (projection,) = changed["projection"].values()
    assert np.std(projection) * np.sqrt(CONFIG.embedding_size) == pytest.approx(1, rel=1e-5)
    words, positions = (
        next(value for name, value in changed[part].items() if "word_embeddings" in name)
        for part in ("words", "positions")
    )
    size = 4  # Numbers that tell the position: a quarter of an embedding.
    assert (words[:, :-size] == 7).all() and (words[:, -size:] != 7).all()
    assert (positions[:, -size:] == 0).all() and (positions[:, :-size] != 7).all()


def test_stages_follow_each_other_and_are_made_once(informed, tmp_path, monkeypatch):
    (tmp_path / "starts").symlink_to(informed.parent)
    data = {"train_data": "long", "short_train_data": "short", "eval_data": "heldout"}
    monkeypatch.setattr(plateau, "FLAGS", types.SimpleNamespace(**data))
    commands = []

    def run(program, *command):
        flags = dict(each.removeprefix("--").partition("=")[::2] for each in command)
        commands.append((program, flags))
        folder = Path(flags["output_dir"])
        (folder / "model").mkdir(parents=True)
        steps = int(flags["num_train_steps"])
        rows = f"{steps},train,6.5,0.1,100\n{steps},eval,{7 - len(commands)},0.2,\n"
        (folder / "metrics.csv").write_text(COLUMNS + rows)

    monkeypatch.setattr(plateau, "run_program", run)
    first = Stage(60, batch=10, layers=1, length=32, decays=False)
    trial = Trial("t", "text", "words", (first, Stage(40, batch=10, warmup=5)), ("--beta_2=0.98",))
    points = plateau.train(trial, tmp_path)
    assert plateau.train(trial, tmp_path) == points
    (program, one), (_, two) = commands
    assert program == "albert_tf.run_pretraining"
    assert json.loads(Path(one["config_file"]).read_text())["num_hidden_layers"] == 1
    assert json.loads(Path(two["config_file"]).read_text())["num_hidden_layers"] == 4
    assert (one["train_data"], two["train_data"]) == ("short", "long")
    assert (one["decay_share"], "decay_share" in two) == ("0", False)
    assert (one["eval_steps"], two["eval_steps"]) == ("15", "10")
    assert one["init_checkpoint"] == str(tmp_path / "starts" / "words")
    assert two["init_checkpoint"] == str(tmp_path / "t_1" / "model")
    assert one["beta_2"] == two["beta_2"] == "0.98"
    assert [point["tokens"] for point in points] == [60 * 320, 60 * 320 + 40 * 1280]
    assert [point["minutes"] for point in points] == [3.2, pytest.approx(3.2 + 512 / 60, abs=0.01)]
    without = dataclasses.replace(trial, name="u", start="", stages=(Stage(8),))
    plateau.train(without, tmp_path)
    assert "init_checkpoint" not in commands[-1][1]
