"""The stages of the demonstration: commands that exist, each run once, and the final table."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from data_pipeline.command_line import flags
from data_pipeline.errors import UserError
from demo import run

NAMES = ["corpus", "records", "adaptation", "fine-tuning", "export", "serving"]


@pytest.fixture
def chosen(monkeypatch, tmp_path):
    """The flags of the demonstration, to be changed by a test."""
    values = SimpleNamespace(
        output_dir=str(tmp_path / "out"), corpus=None, restart=False,
        adaptation_flag=["--seed=1"], classifier_flag=["--seed=2"],
    )  # fmt: skip
    monkeypatch.setattr(run, "FLAGS", values)
    monkeypatch.setattr(run, "preset_vocabulary", lambda name: f"{name}.model")
    return values


def test_stages_and_what_they_make(chosen):
    stages = run.stages(Path("out"))
    assert [stage.name for stage in stages] == NAMES
    assert [len(stage.commands) for stage in stages] == [1, 2, 1, 3, 3, 1]
    assert [stage.artifact for stage in stages] == [
        "corpus", "records", "adaptation/model", "classifier/seeds.md", "saved_models",
        "serving.json",
    ]  # fmt: skip


def test_commands_are_those_that_a_user_would_type(chosen, new_flags):
    """Every program and every flag exists; files of one stage are those of the next."""
    commands = [command for stage in run.stages(Path("out")) for command in stage.commands]
    for module, *arguments in commands:
        with new_flags():
            program = importlib.import_module(module)
            program.define_flags()
            names = {flag.name for flag in flags.defined()} | {"flagfile"}
        given = [argument.removeprefix("--").partition("=") for argument in arguments]
        assert {name for name, _, _ in given} <= names
        for name, _, value in given:
            assert name != "flagfile" or Path(value).exists()
    assert commands[0][:2] == ("demo.collect_docstrings", "--output_dir=out/corpus")
    assert commands[2] == (
        "data_pipeline.create_pretraining_data", "--input=out/corpus/heldout.txt",
        "--output_dir=out/records/heldout", "--vocab_file=albert-small-en.model",
        "--max_seq_length=64", "--overwrite",
    )  # fmt: skip
    assert commands[3][-1] == "--seed=1"
    ours, scratch = (set(command) for command in commands[5:7])
    assert commands[5][-1] == commands[6][-1] == "--seed=2"
    assert {flag.partition("=")[0] for flag in ours ^ scratch} == {
        "--init_checkpoint", "--preset", "--vocab_file", "--learning_rate", "--output_dir",
    }  # fmt: skip
    assert [command[1:3] for command in commands[7:10]] == [
        ("--model_dir=out/classifier/seed-0/model", "--task=classifier"),
        ("--model_dir=out/adaptation/model", "--task=masked_lm"),
        ("--model_dir=out/adaptation/model", "--task=encoder"),
    ]


@pytest.mark.parametrize(
    "has_bfloat16, expected",
    [(False, "--precision=float32"), (True, "--precision=mixed_bfloat16")],
)
def test_training_is_in_bfloat16_where_that_is_faster(chosen, monkeypatch, has_bfloat16, expected):
    monkeypatch.setattr(run, "processor_has_bfloat16", lambda: has_bfloat16)
    stages = {stage.name: stage.commands for stage in run.stages(Path("out"))}
    training = stages["adaptation"] + stages["fine-tuning"][1:]
    assert [[flag for flag in command if "precision" in flag] for command in training] == [
        [expected]
    ] * 3


def test_a_text_of_ones_own(chosen):
    chosen.corpus = "my.txt"
    assert run.stages(Path("out"))[0].commands[0][-1] == "--corpus=my.txt"


@pytest.fixture
def stages(chosen, monkeypatch):
    """Two short stages; the commands that were run."""
    made = []
    two = [
        run.Stage("first", (("a", "--x=1"), ("b",)), "one", lambda out: "a figure"),
        run.Stage("second", (("c",),), "two", lambda out: "another figure"),
    ]
    monkeypatch.setattr(run, "stages", lambda out: two)
    monkeypatch.setattr(run, "run", made.append)
    monkeypatch.setattr(run.figures, "plot", lambda out: made.append("plot"))
    return two, made


def test_finished_stages_are_not_run_again(stages, chosen, capsys):
    _, made = stages
    run.main()
    assert made == [("a", "--x=1"), ("b",), ("c",), "plot"]
    assert "=== first ===" in capsys.readouterr().out
    run.main()
    assert made[4:] == ["plot"]
    shown = capsys.readouterr().out
    assert "===" not in shown and "a figure" in shown
    assert f"Curves: {chosen.output_dir}/curves.png\nNext: python -m export.server" in shown
    record = Path(chosen.output_dir) / "stages" / "second.json"
    assert json.loads(record.read_text())["commands"] == [["c"]]
    record.unlink()
    run.main()
    assert made[5:] == [("c",), "plot"]
    chosen.restart = True
    run.main()
    assert made[7:] == [("a", "--x=1"), ("b",), ("c",), "plot"]


def test_a_stage_that_failed_is_run_again(stages, monkeypatch):
    _, made = stages

    def fail(command):
        made.append(command)
        raise UserError("failed")

    monkeypatch.setattr(run, "run", fail)
    for _ in range(2):
        with pytest.raises(UserError, match="^failed$"):
            run.main()
    assert made == [("a", "--x=1")] * 2


def test_other_settings_need_another_folder(stages, chosen):
    two, made = stages
    run.main()
    two[1] = run.Stage("second", (("c", "--y=2"),), "two", two[1].figure)
    with pytest.raises(UserError, match=r"holds the stage 'second' of a demonstration with other"):
        run.main()
    assert made[-1] == "plot"


def test_commands_are_shown_as_a_shell_takes_them(monkeypatch, capsys):
    called = []

    def call(command):
        called.append(command)
        return SimpleNamespace(returncode=len(called) - 1)

    monkeypatch.setattr(run.subprocess, "run", call)
    run.run(("demo.query", "--demo_dir=a b"))
    assert capsys.readouterr().out == "\n$ python -m demo.query '--demo_dir=a b'\n"
    assert called[0][1:] == ["-m", "demo.query", "--demo_dir=a b"]
    with pytest.raises(UserError, match="^python -m demo.query failed with exit code 1; its mess"):
        run.run(("demo.query",))


def test_the_final_table(capsys):
    run.print_summary([("corpus", 1.4, "2 MB", "out/corpus"), ("export", 1000.4, "a", "out/s")])
    assert capsys.readouterr().out.splitlines() == [
        "",
        "stage         seconds  result  where",
        "corpus              1  2 MB  out/corpus",
        "export           1000  a     out/s",
        "total            1002",
    ]
