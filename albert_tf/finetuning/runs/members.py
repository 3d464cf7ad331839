"""The members of an ensemble: stored outputs of runs, checked to belong together.

Members are averaged row by row and class by class. So all of them must have answered the same
examples, cut into the same rows, with the same classes in the same order.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from albert_tf.errors import UserError
from albert_tf.finetuning.finetuned import FineTuned, load_finetuned
from albert_tf.finetuning.runs.attempts import is_put_aside
from albert_tf.finetuning.runs.run_files import Origin, best_folder, outputs_path, read_outputs
from albert_tf.finetuning.runs.series import run_folders
from albert_tf.finetuning.tasks.base import StoredOutputs, Task, TaskData
from albert_tf.finetuning.training_examples import read_split
from data_pipeline.files import storage
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split

# Called in this order: find_runs finds the runs, find_splits the splits that all of them have
# answered, load_members checks that these outputs belong together, and read_answered reads the
# examples that they answer. This module only checks: averaging outputs that do not belong together
# would give a plausible but wrong result.
CHECKPOINTS = ("best", "last")
_PREDICT = "predict"  # The split of --predict_file, which every task can have.


class Member(NamedTuple):
    """A model of an ensemble.

    Attributes:
      run: folder of its run.
      checkpoint: "best" or "last".
      model_sha256: hash of its weights file, which shows whether a model occurs twice.
      outputs: split -> its stored outputs.
    """

    run: str
    checkpoint: str
    model_sha256: str
    outputs: Mapping[str, StoredOutputs]

    @property
    def name(self) -> str:
        """Run and checkpoint, as in "runs/mrpc/seed-1 (best)"."""
        return f"{self.run} ({self.checkpoint})"


class Answered(NamedTuple):
    """A split that all members have answered.

    Attributes:
      examples: of the split.
      features: the rows of the examples, to which the outputs belong.
      is_scored: whether the right answers are known.
    """

    examples: Split
    features: Features
    is_scored: bool


class _Stored(NamedTuple):
    """A file of stored outputs."""

    path: str
    outputs: StoredOutputs
    origin: Origin


def find_folders(patterns: Sequence[str], flag: str = "runs") -> list[str]:
    """Folders by name, or by a pattern with * and ?, which skips runs that were put aside."""
    folders: list[str] = []
    given = [os.path.realpath(pattern) for pattern in patterns]
    for pattern, path in zip(patterns, given):
        if given.count(path) > 1:  # Also as runs/rte and runs/rte/.
            raise UserError(f"--{flag} names {pattern} twice. Name each run once.")
        # runs/* also matches runs/rte.attempt-1, which learned nothing: select it only by name.
        names = [
            name for name in storage.match(pattern) if name == pattern or not is_put_aside(name)
        ]
        matches = [name.rstrip("/") for name in names if storage.is_folder(name)]
        if not matches:
            raise UserError(
                f"--{flag}: {pattern} is not a folder. Name the --output_dir of a run_finetuning "
                "run."
            )
        folders += matches
    return list(dict.fromkeys(folders))  # Two patterns may match one folder.


def find_runs(patterns: Sequence[str], flag: str = "runs") -> list[str]:
    """The folders of runs; a folder of a series stands for its runs. See `find_folders`."""
    runs = [run for folder in find_folders(patterns, flag) for run in run_folders(folder)]
    return list(dict.fromkeys(runs))  # A series and one of its runs may both be named.


def find_splits(
    task: Task,
    data: TaskData,
    runs: Sequence[str],
    checkpoints: Sequence[str],
    wanted: Sequence[str],
) -> list[str]:
    """The splits of which all members have stored outputs, at least one.

    `wanted` are the splits to use, which must be among these; (): all of them.
    """
    known = [*dict.fromkeys([*task.dev_splits, *task.test_splits, _PREDICT])]
    # The user's own files have no standard paths: a split can only be read if it is given.
    if task.reader is None or (data.files and not data.data_dir):
        known = [split for split in known if split in data.files or split in data.splits]
    splits = []
    for split in wanted or known:
        # The name of a file does not include the task, which is checked when the file is read.
        paths = [outputs_path(run, split, name) for run in runs for name in checkpoints]
        missing = [path for path in paths if not storage.exists(path)]
        if not missing:
            splits.append(split)
        elif wanted:
            raise UserError(f"{missing[0]} is missing. {_how_to_store(task, split)}")
        # Say nothing about splits that no run has predicted: runs store only dev outputs on their
        # own, other splits need --mode=predict.
        elif len(missing) < len(paths):
            print(
                f"Not answered: {split}, as {len(missing)} of {len(paths)} members have stored no "
                f"outputs ({missing[0]}). {_how_to_store(task, split)}"
            )
    if not splits:
        raise UserError(
            f"the runs have stored no outputs for --task={task.name}: {runs[0]}. Name runs of this "
            f"task, and its data files. {_how_to_store(task, (known or ['dev'])[0])}"
        )
    return splits


def _how_to_store(task: Task, split: str) -> str:
    return (
        f"Store them: run_finetuning --mode=predict --task={task.name} --splits={split} "
        "--output_dir=<run>; for the last model also --init_checkpoint=<run>/last_model."
    )


def load_members(
    task: Task, runs: Sequence[str], checkpoints: Sequence[str], splits: Sequence[str]
) -> tuple[list[Member], dict[str, str]]:
    """The members in order, and split -> hash of the examples that they have answered."""
    members: list[Member] = []
    first: dict[str, _Stored] = {}
    for run in runs:
        for checkpoint in checkpoints:
            outputs, model = {}, ""
            for split in splits:
                path = outputs_path(run, split, checkpoint)
                stored = _Stored(path, *read_outputs(path))
                # All are compared with the first one, and so with each other.
                _check_alike(task, stored, first.setdefault(split, stored))
                # A run writes its dev outputs at its end, a later command writes the others. If
                # the run was continued in between, they are of two different models.
                if model not in ("", stored.origin.model_sha256):
                    raise UserError(
                        f"{path} is from another model than the outputs on {splits[0]} next to it: "
                        "training went on in between. Predict again, or name --splits of one model."
                    )
                outputs[split], model = stored.outputs, stored.origin.model_sha256
            # If the best checkpoint is the last one, it would count twice in every average.
            twin = next((member for member in members if member.model_sha256 == model), None)
            if twin:
                print(f"{run} ({checkpoint}) is the same model as {twin.name}: counted once.")
                continue
            members.append(Member(run, checkpoint, model, outputs))
    return members, {split: first[split].origin.data_sha256 for split in splits}


def _check_alike(task: Task, one: _Stored, first: _Stored) -> None:
    """Raises UserError if outputs are of another task, or of other rows than the first ones."""
    # Arrays of two tasks may have the same shape and classes of the same names.
    if one.origin.task != task.name:
        raise UserError(
            f"{one.path} has answers to {one.origin.task}, and --task={task.name} is given. Name "
            "runs of one task."
        )
    # Logits are averaged by index: the same classes in another order would be mixed up.
    if one.origin.labels != first.origin.labels:
        raise UserError(
            f"{one.path} is of a model with the classes {', '.join(one.origin.labels) or 'none'}; "
            f"the model of {first.path} has {', '.join(first.origin.labels) or 'none'}. Name runs "
            "that were trained on the same classes, in the same order."
        )
    # Rows are averaged by row number: other examples, or another order, would go unnoticed.
    if one.origin.data_sha256 != first.origin.data_sha256:
        raise UserError(
            f"{one.path} has answers to other examples than {first.path}. Predict the same files "
            "with each run."
        )
    # Equal examples may still be split differently: words into subwords, contexts into windows.
    shapes = [
        {name: array.shape for name, array in outputs.items() if name not in task.uneven_outputs}
        for outputs in (one.outputs, first.outputs)
    ]
    if shapes[0] != shapes[1]:
        raise UserError(
            f"{one.path} has arrays of the shapes {shapes[0]}, {first.path} of {shapes[1]}. Name "
            "runs with the same lengths and vocabulary."
        )


def read_answered(
    task: Task, data: TaskData, runs: Sequence[str], hashes: Mapping[str, str]
) -> tuple[FineTuned, dict[str, Answered]]:
    """The first run's model without its weights, and the splits that were answered.

    `hashes`: split -> hash of the examples that were answered.
    """
    # The first run stands for all: their classes are known to be equal. No weights are read.
    models = [load_finetuned(best_folder(run), task, None) for run in runs]
    if not task.rows_are_examples:
        _check_rows(models)
    splits = {}
    for split, digest in hashes.items():
        examples = read_split(task, data, split)
        # Stored outputs hold no texts: these examples give the rows their meaning, and their file
        # may have been edited since.
        if examples.sha256() != digest:
            raise UserError(
                f"{examples.source} holds other examples than those that {runs[0]} has answered "
                f"({split}). Name the data that the runs answered, or predict these."
            )
        # Splits to predict count as unlabeled, even if their file has right answers: neither
        # members nor a threshold are chosen on them.
        is_scored = split not in (*task.test_splits, _PREDICT)
        features = models[0].features(examples, has_targets=is_scored)
        splits[split] = Answered(examples, features, is_scored)
    return models[0], splits


def _check_rows(models: Sequence[FineTuned]) -> None:
    """Raises UserError if runs cut their examples into different rows.

    Shapes of outputs may not show it: the same number of windows may begin elsewhere, and
    version 1.1 of SQuAD stores only spans.
    """
    first: dict[str, Any] = {}
    for model in models:
        found = {
            **dataclasses.asdict(model.lengths),
            "vocab_fingerprint": model.tokenizer.fingerprint,
            **dataclasses.asdict(model.tokenizer.settings),
        }
        first = first or found
        for name, value in found.items():
            if value != first[name]:
                raise UserError(
                    f"{model.folder} has {name} {value}, {models[0].folder} has {first[name]}: "
                    "they split texts into different rows, whose answers cannot be averaged. Name "
                    "runs with the same lengths and vocabulary."
                )
