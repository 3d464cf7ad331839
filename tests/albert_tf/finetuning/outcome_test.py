"""What a fine-tuning run says at its end, and the commands that come next."""

import dataclasses
import types

import pytest

from albert_tf.finetuning import outcome
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS, Classes, own_classes
from data_pipeline.finetuning.examples import Split


def test_a_last_model_that_has_lost_what_it_had_learned():
    """Said where the best one tells examples apart, and only there."""
    task = types.SimpleNamespace(remarks=lambda features, predictions, labels: predictions)
    results = [
        types.SimpleNamespace(split=split, notes=notes)
        for split, notes in (("dev", ()), ("other", ("All are 1.",)), ("sound", ()))
    ]
    last = {"dev": ["All are 0."], "other": ["All are 1."], "sound": []}
    (sentence,) = outcome.remarks_on_forgetting(task, dict.fromkeys(last), last, (), results)
    assert sentence.startswith("The last model lost what it had") and "dev: All are 0." in sentence


def test_a_last_model_that_is_better_when_scored_again():
    """On the split that chose the best one, and where both have a score."""

    def said(split: str, best: float | None, last: float | None) -> list[str]:
        scored = (types.SimpleNamespace(metrics={"f1": score}) for score in (best, last))
        names = {"split": split, "best_on": "dev", "key": "f1"}
        found = types.SimpleNamespace(**names, **dict(zip(("best", "last"), scored)))
        return outcome.remarks_on_rescoring([found])

    (sentence,) = said("dev", 0.5, 0.75)
    assert "the last model has f1 0.7500, and the best one 0.5000" in sentence
    assert not said("dev", 0.5, 0.5) and not said("other", 0.5, 0.75)
    assert not said("dev", None, 0.75) and not said("dev", 0.5, None)


@pytest.mark.parametrize(
    ("task", "data", "given"),
    [
        ("mrpc", TaskData("glue"), "--data_dir=glue"),
        ("tagging", TaskData("ner"), "--data_dir=ner"),
        ("tagging", TaskData(files={"train": "x"}), "--predict_file=..."),
        ("squad2.0", TaskData("squad"), "--predict_file=..."),
        ("tsv", TaskData(splits={"train": Split("train", [])}), "--predict_file=..."),
        ("mrpc", TaskData(splits={"train": Split("train", [])}), None),
    ],
)
def test_the_next_command_names_data_that_the_program_can_read(task, data, given):
    commands = outcome.next_commands(TASKS[task], data, "runs/x", ())
    expected = f"--mode=predict --task={task} --output_dir=runs/x {given}"
    assert commands == ([f"python -m albert_tf.run_finetuning {expected}"] if given else [])


def test_classes_can_be_exported():
    mine = dataclasses.replace(TASKS["mrpc"], name="mine")  # Nothing that --task knows.
    (command,) = outcome.next_commands(mine, TaskData("data"), "runs/x", ("0", "1"))
    assert command.startswith("python -m export.run_export --model_dir=runs/x/model --task=class")


def test_columns_that_are_not_the_usual_ones():
    mine = own_classes(Classes("premise", "hypothesis", "gold"))
    (command,) = outcome.next_commands(mine, TaskData(files={"train": "x"}), "runs/x", ())
    assert command.endswith("--predict_file=... --text_column=premise --pair_column=hypothesis")
