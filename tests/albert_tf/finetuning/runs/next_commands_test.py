"""The commands after a run: with data that the program can read, of tasks that it knows."""

from __future__ import annotations

import dataclasses

import pytest

from albert_tf.finetuning.runs.next_commands import next_commands
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS, own_classes
from data_pipeline.finetuning.examples import Split


@pytest.mark.parametrize(
    ("task", "source", "data"),
    [
        ("mrpc", TaskData("glue"), "--data_dir=glue"),
        ("tagging", TaskData("ner"), "--data_dir=ner"),
        ("tagging", TaskData(files={"train": "x"}), "--predict_file=..."),
        ("squad2.0", TaskData("squad"), "--predict_file=..."),
        ("tsv", TaskData(splits={"train": Split("train", [])}), "--predict_file=..."),
        ("mrpc", TaskData(splits={"train": Split("train", [])}), None),
    ],
)
def test_the_next_command_names_data_that_the_program_can_read(task, source, data):
    commands = next_commands(TASKS[task], source, "runs/x", ())
    expected = f"--mode=predict --task={task} --output_dir=runs/x {data}"
    assert commands == ([f"python -m albert_tf.run_finetuning {expected}"] if data else [])


def test_classes_can_be_exported():
    mine = dataclasses.replace(TASKS["mrpc"], name="mine")  # Nothing that --task knows.
    (command,) = next_commands(mine, TaskData("data"), "runs/x", ("0", "1"))
    assert command.startswith("python -m export.run_export --model_dir=runs/x/model --task=class")


def test_columns_that_are_not_the_usual_ones():
    mine = own_classes(text_column="premise", pair_column="hypothesis", label_column="gold")
    (command,) = next_commands(mine, TaskData(files={"train": "x"}), "runs/x", ())
    assert command.endswith("--predict_file=... --text_column=premise --pair_column=hypothesis")
