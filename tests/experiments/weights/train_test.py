"""Stages: each begins with the weights of the one before, and is made once."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest

from albert_tf import AlbertPretrainer, get_preset
from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from experiments.copy_probe import DISTANCES, QUESTIONS
from experiments.weights import train

ROOT = Path(__file__).parents[3]
STAGES = ROOT / "experiments" / "weights" / "stages"
VOCABULARY = "albert_tf/weights/albert-small-en/spiece.model"


@pytest.fixture(name="start")
def fixture_start(tmp_path):
    config = get_preset("albert-small-en").replace(
        num_hidden_layers=1, embedding_size=8, hidden_size=16, intermediate_size=32
    )
    metadata, rules = {"max_seq_length": 16}, {"lower": True, "rules": "google"}
    native.save(AlbertPretrainer(config), str(tmp_path / "start"), metadata, VOCABULARY, rules)
    return tmp_path / "start"


def test_stages_go_on_from_each_other(start, few_words, monkeypatch, run_program):
    folder = start.parent
    pages = [json.dumps({"text": " ".join(few_words[i:]) + "."}) for i in range(30)]
    for name in ("train.jsonl", "wiki.jsonl"):
        (folder / name).write_text("\n".join(pages))
    for name in "ab":
        (folder / f"{name}.flags").write_text("--max_seq_length=16")
    (folder / "a.mean").write_text("0.5*start,0.5*a\n")
    commands = []

    def run(program, *command):
        commands.append((program.split(".")[-1], *command))
        if program == "albert_tf.run_pretraining":
            shutil.copytree(start, command[3].removeprefix("--output_dir=") + "/model")
            return
        with pytest.raises(SystemExit) as end:
            run_program(program, *command)
        if end.value.code:
            raise UserError(program)

    found = [
        {"question": question, "distance": distance, "words": 38, "found": 5}
        for question in QUESTIONS
        for distance in DISTANCES
    ]
    monkeypatch.setattr(train, "run_program", run)
    monkeypatch.setattr(train, "probe", lambda weights: found)
    evaluated = []

    def evaluate(weights, held_out, devices):
        evaluated.append((weights, *held_out.folders))
        if len(evaluated) == 2:
            raise KeyboardInterrupt
        return {"masked_lm_loss": len(evaluated), "masked_lm_accuracy": 0.5}

    monkeypatch.setattr(train, "evaluate_model", evaluate)
    values = {"stages": [f"{folder}/?.*"], "init_checkpoint": str(start)}
    values |= {"train_text": f"{folder}/train.jsonl", "output_dir": str(folder / "out")}
    values |= {"heldout": f"{folder}/wiki.jsonl"}
    flags = type("Flags", (), {**values, "more_flags": ["--num_train_steps=2"]})
    monkeypatch.setattr(train, "FLAGS", flags)
    with pytest.raises(KeyboardInterrupt):  # In the evaluation of the first stage.
        train.main()
    train.main()
    train.main()  # There is nothing left to do.
    trained = [command for command in commands if command[0] == "run_pretraining"]
    assert [re.search("init_checkpoint=(.*)", command[2])[1] for command in trained] == [
        str(start),
        f"{folder}/out/a.mean/weights",
    ]
    assert len([command for command in commands if command[0] == "create_pretraining_data"]) == 1
    rows = list(csv.DictReader((folder / "out" / "stages.csv").open()))
    assert [row["stage"] for row in rows] == ["start", "a", "a.mean", "b"]
    assert [row["wiki loss"] for row in rows] == ["1", "3", "4", "5"]
    assert evaluated[0] == (str(start), f"{folder}/out/heldout/wiki")
    assert evaluated[4][0] == f"{folder}/out/b/weights"
    assert rows[3]["same word, 36"] == "5 of 38"
    assert (folder / "out" / "stages.png").read_bytes().startswith(b"\x89PNG")
    model = AlbertPretrainer.from_preset(str(folder / "out" / "b" / "weights"))
    assert model.config.hidden_size == 16


@pytest.mark.parametrize("path", sorted(STAGES.glob("*.flags")), ids=lambda path: path.stem)
def test_flags_of_the_stages_are_read(path, result_of):
    program = "experiments.weights.compile_update"
    if not path.name.startswith("gpu"):
        program = "albert_tf.run_pretraining"
    more = ("--output_dir=out", "--train_text=text", "--print_flags")
    result = result_of(program, f"--flagfile={path}", "--init_checkpoint=albert-small-en", *more)
    values = json.loads(result.stdout)
    lines = [line for line in path.read_text().splitlines() if line.startswith("--")]
    for name, _, value in (line[2:].partition("=") for line in lines):
        assert str(values[name]).lower() == (value or "true").lower(), name
    tokens = values["train_batch_size"] * values["max_seq_length"] * values["num_train_steps"]
    # A stage from the weights of the package takes less than two hours at 5,000 tokens a second.
    assert not path.name.startswith("second") or tokens < 5000 * 7200


def test_means_are_of_stages_before_them():
    for mean in STAGES.glob("*.mean"):
        parts = [part.split("*") for part in mean.read_text().strip().split(",")]
        assert sum(float(share) for share, _ in parts) == pytest.approx(1)
        for _, name in parts:
            assert name == "start" or ((STAGES / f"{name}.flags").exists() and name <= mean.stem)


def test_no_stage_is_refused(start, result_of):
    result = result_of(
        "experiments.weights.train",
        *("--stages=none*", "--train_text=x", "--heldout=x", f"--output_dir={start}/new"),
    )
    assert result.returncode == 2 and "--stages=none* matches no file" in result.stderr
