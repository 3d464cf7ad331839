"""The commands that come after a fine-tuning run, which it prints at its end."""

from __future__ import annotations

from collections.abc import Sequence

from albert_tf.finetuning.runs.run_files import best_folder
from albert_tf.finetuning.tasks.base import Task, TaskData
from albert_tf.finetuning.tasks.table import TASKS


def next_commands(
    task: Task, source: TaskData, output_dir: str, labels: Sequence[str]
) -> list[str]:
    """Command lines that use the result of a run, for people.

    Args:
      task: of the run.
      source: the place of its data.
      output_dir: folder of the run.
      labels: names of the classes; (): there are none.

    Returns:
      Prediction, if the program knows the task and can read its data, and export, of classes.
    """
    commands = []
    data = _data_to_predict(task, source)
    if data and task.name in TASKS:
        commands.append(
            f"python -m albert_tf.run_finetuning --mode=predict --task={task.name} "
            f"--output_dir={output_dir} {data}"
        )
    if task.export_task and labels:
        commands.append(
            f"python -m export.run_export --model_dir={best_folder(output_dir)} "
            f"--task={task.export_task} --output_dir=..."
        )
    return commands


def _data_to_predict(task: Task, source: TaskData) -> str:
    """The flag of what the program predicts; "": it cannot read examples that are in memory."""
    if source.data_dir and task.test_splits != ("predict",):
        return f"--data_dir={source.data_dir}"
    return f"--predict_file=...{_columns(task)}" if task.file_reader else ""


def _columns(task: Task) -> str:
    """The flags of a task's columns of text that have not their usual names."""
    usual = TASKS[task.name].data_settings if task.name in TASKS else {}
    return "".join(
        f" --{name}={task.data_settings[name]}"
        for name in ("text_column", "pair_column")
        if task.data_settings.get(name) != usual.get(name)
    )
