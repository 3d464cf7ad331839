"""The commands of the distilled runs, and their table."""

import json
from pathlib import Path

import pytest

from data_pipeline.command_line import flags
from experiments import distillation
from experiments.tables import read_rows
from tests.conftest import flags_of_its_own


@pytest.fixture(name="commands")
def fixture_commands(monkeypatch, tmp_path):
    """The commands that were given; a run scores its seed in percent, a distilled one 5 more."""
    given = []

    def run(module, *arguments):
        assert module == "albert_tf.run_finetuning"
        given.append(arguments)
        folder = Path(next(a for a in arguments if a.startswith("--output_dir=")).split("=")[1])
        (folder / "outputs").mkdir(parents=True, exist_ok=True)
        if "--splits=train" in arguments:
            (folder / "outputs" / "train.best.npz").touch()
        score = int(folder.name) / 100 + 0.05 * (folder.parent.name != "plain")
        result = {"key": "f1", "last": {"metrics": {"f1": score}}}
        (folder / "results.json").write_text(json.dumps({"results": [result]}))

    monkeypatch.setattr(distillation, "run_program", run)
    with flags_of_its_own():
        distillation.define_flags()
        arguments = ["--data_dir=glue", f"--output_dir={tmp_path / 'out'}", "--tasks=mrpc"]
        flags.FLAGS(["program", *arguments, f"--rows={tmp_path / 'rows.csv'}", "--seeds=2"])
        yield given


def test_an_ensemble_teaches_one_model(commands, tmp_path, capsys):
    flags.FLAGS.cell = "^(ensemble|2 layers taught)$"
    # This one was interrupted before it answered the training examples.
    folder = distillation.run_path("mrpc", "plain", 0).parents[1]
    (folder / "plain" / "0" / "outputs").mkdir(parents=True)
    distillation.main()
    runs = {a[2].removeprefix(f"--output_dir={folder}/"): a[3:] for a in commands}
    plain = [f"{folder}/plain/{seed}" for seed in range(5)]
    assert list(runs) == [*(f"plain/{i}" for i in range(5)), *(f"ensemble/{i}" for i in (0, 1))] + [
        f"2_layers_taught/{i}" for i in (0, 1)
    ]
    assert runs["plain/1"] == ("--mode=predict", "--splits=train")
    outputs = ",".join(f"{each}/outputs" for each in plain)
    assert f"--teacher={outputs}" in runs["ensemble/1"]
    assert f"--teacher={plain[1]}" in runs["2_layers_taught/1"]
    student = next(a for a in runs["2_layers_taught/1"] if a.startswith("--config_file="))
    assert json.loads(Path(student.split("=")[1]).read_text())["num_hidden_layers"] == 2
    commands.clear()
    flags.FLAGS.cell = "^(plain|ensemble)$"
    distillation.main()
    assert len(commands) == 4  # Plain runs, whose rows were missing; the ensemble's are there.
    assert len(read_rows(tmp_path / "rows.csv")) == 6
    assert "| mrpc | ensemble | 2 | 5.5 | 5.0 to 6.0 | plain | +5.0 (+5.0 to +5.0) |" in (
        capsys.readouterr().out
    )
    flags.FLAGS.cell, flags.FLAGS.epochs = "^ensemble$", 4
    commands.clear()
    distillation.main()
    # The ensemble and its five teachers again: rows are of three epochs.
    assert len(commands) == 2 + 5 * 2
