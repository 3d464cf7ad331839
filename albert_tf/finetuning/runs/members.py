"""The members of an ensemble: outputs that runs have stored, checked to belong together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.finetuning.finetuned import FineTuned, load_finetuned
from albert_tf.finetuning.runs.attempts import is_put_aside
from albert_tf.finetuning.runs.run_files import best_folder, outputs_path
from albert_tf.finetuning.runs.series import run_folders
from albert_tf.finetuning.runs.stored_outputs import read_outputs
from albert_tf.finetuning.tasks.base import StoredOutputs, Task, TaskData
from albert_tf.finetuning.training_examples import read_split
from data_pipeline.files import storage
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings

CHECKPOINTS = ("best", "last")


class Member(NamedTuple):
    """A model of an ensemble.

    Attributes:
      run: folder of its run.
      checkpoint: "best" or "last".
      model_sha256: hash of its weights' file.
      outputs: split -> what is stored of its outputs.
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
      features: their rows, which the outputs are of.
      is_scored: whether the right answers are known.
    """

    examples: Split
    features: Features
    is_scored: bool


def find_folders(patterns: Sequence[str]) -> list[str]:
    """Folders by name, or by a pattern with * and ?, which leaves out runs that were put aside.

    Raises:
      UserError: nothing has such a name, or one is given twice.
    """
    found: list[str] = []
    given = [os.path.realpath(pattern) for pattern in patterns]
    for pattern, path in zip(patterns, given):
        if given.count(path) > 1:
            raise UserError(f"--runs names {pattern} twice. Name each run once.")
        matches = storage.match(pattern)
        folders = [name for name in matches if name == pattern or not is_put_aside(name)]
        folders = [folder.rstrip("/") for folder in folders if storage.is_folder(folder)]
        if not folders:
            raise UserError(
                f"--runs: {pattern} is not a folder. Name the --output_dir of a run_finetuning run."
            )
        found += folders
    return list(dict.fromkeys(found))


def find_runs(patterns: Sequence[str]) -> list[str]:
    """The folders of runs; a folder of a series stands for its runs. See `find_folders`."""
    return list(
        dict.fromkeys(run for folder in find_folders(patterns) for run in run_folders(folder))
    )


def find_splits(
    task: Task,
    data: TaskData,
    runs: Sequence[str],
    checkpoints: Sequence[str],
    wanted: Sequence[str],
) -> list[str]:
    """The splits of which all members have stored outputs.

    Args:
      task: whose splits they are.
      data: of the task; splits of single files that are not named are left out.
      runs: folders.
      checkpoints: of each run.
      wanted: splits that must be among them; (): all that are.

    Returns:
      Their names, at least one.

    Raises:
      UserError: outputs of a wanted split are missing, or there are none at all.
    """
    found = []
    known = [*dict.fromkeys([*task.dev_splits, *task.test_splits, "predict"])]
    if task.reader is None or (data.files and not data.data_dir):
        known = [split for split in known if split in data.files or split in data.splits]
    for split in wanted or known:
        paths = [outputs_path(run, split, name) for run in runs for name in checkpoints]
        missing = [path for path in paths if not storage.exists(path)]
        if not missing:
            found.append(split)
        elif wanted:
            raise UserError(f"{missing[0]} is missing. {_how_to_store(task, split)}")
        elif len(missing) < len(paths):
            print(
                f"Not answered: {split}, as {len(missing)} of {len(paths)} members have stored no "
                f"outputs ({missing[0]}). {_how_to_store(task, split)}"
            )
    if not found:
        raise UserError(
            f"the runs have stored no outputs for --task={task.name}: {runs[0]}. Name folders of "
            f"runs of this task, and its files. {_how_to_store(task, (known or ['dev'])[0])}"
        )
    return found


def _how_to_store(task: Task, split: str) -> str:
    return (
        f"Store them: run_finetuning --mode=predict --task={task.name} --splits={split} "
        "--output_dir=<run>; for the last model --init_checkpoint=<run>/last_model as well."
    )


def load_members(
    task: Task, runs: Sequence[str], checkpoints: Sequence[str], splits: Sequence[str]
) -> tuple[list[Member], dict[str, str]]:
    """The members, and the hash of the examples of each split that they have answered.

    A model that comes twice, as where the best checkpoint is the last one, is one member.

    Args:
      task: that was answered.
      runs: folders.
      checkpoints: of each run, of CHECKPOINTS.
      splits: all of which have stored outputs.

    Returns:
      Members in order; split -> SHA-256.

    Raises:
      UserError: members differ in task, classes, data or the shape of their outputs.
    """
    members: list[Member] = []
    first: dict[str, tuple[str, dict, StoredOutputs]] = {}
    for run in runs:
        for checkpoint in checkpoints:
            outputs, model = {}, ""
            for split in splits:
                path = outputs_path(run, split, checkpoint)
                stored, about = read_outputs(path)
                _check_task(path, task, about)
                one = (path, about, stored)
                _check_alike(task, one, first.setdefault(split, one))
                if model not in ("", about["model_sha256"]):
                    raise UserError(
                        f"{path} is of another model than the outputs on {splits[0]} beside it: "
                        "the run went on in between. Predict again, or name --splits of one model."
                    )
                outputs[split], model = stored, about["model_sha256"]
            twin = next((member for member in members if member.model_sha256 == model), None)
            if twin:
                print(f"{run} ({checkpoint}) is the same model as {twin.name}: counted once.")
                continue
            members.append(Member(run, checkpoint, model, outputs))
    return members, {split: first[split][1]["data_sha256"] for split in splits}


def _check_task(path: str, task: Task, about: Mapping) -> None:
    if about["task"] != task.name:
        raise UserError(
            f"{path} has answers to {about['task']}, and --task={task.name} is given. Name runs "
            "of one task."
        )


def _check_alike(
    task: Task, one: tuple[str, dict, StoredOutputs], first: tuple[str, dict, StoredOutputs]
) -> None:
    """Raises UserError where outputs, as (path, origin, arrays), are not of the same rows."""
    path, about, stored = one
    if about["labels"] != first[1]["labels"]:
        raise UserError(
            f"{path} is of a model with the classes {', '.join(about['labels']) or 'none'}; that "
            f"of {first[0]} has {', '.join(first[1]['labels']) or 'none'}. Name runs that were "
            "trained on the same classes, in the same order."
        )
    if about["data_sha256"] != first[1]["data_sha256"]:
        raise UserError(
            f"{path} has answers to other examples than {first[0]}. Evaluate or predict the same "
            "files with each run."
        )
    shapes = [
        {name: array.shape for name, array in arrays.items() if name not in task.uneven_outputs}
        for arrays in (stored, first[2])
    ]
    if shapes[0] != shapes[1]:
        raise UserError(
            f"{path} has arrays of the shapes {shapes[0]}, {first[0]} of {shapes[1]}. Name runs "
            "with the same lengths and vocabulary."
        )


def read_answered(
    task: Task,
    data: TaskData,
    runs: Sequence[str],
    hashes: Mapping[str, str],
) -> tuple[FineTuned, dict[str, Answered]]:
    """The examples that the members have answered; no model is loaded.

    Args:
      task: that they belong to.
      data: of the task.
      runs: folders, each with its model.
      hashes: split -> SHA-256 of the examples that were answered.

    Returns:
      What inputs and outputs of the members mean; the splits.

    Raises:
      UserError: the data are not those that were answered, or rows of the members are different
        parts of the examples.
    """
    found = load_finetuned(best_folder(runs[0]), task, None)
    splits = {}
    for split, digest in hashes.items():
        examples = read_split(task, data, split)
        if examples.sha256() != digest:
            raise UserError(
                f"{examples.source} holds other examples than those that {runs[0]} has answered "
                f"({split}). Name the data that the runs were given, or predict these."
            )
        is_scored = split not in (*task.test_splits, "predict")
        features = found.features(examples, is_scored)
        if not task.rows_are_examples:
            _check_windows(runs)
        splits[split] = Answered(examples, features, is_scored)
    return found, splits


def _check_windows(runs: Sequence[str]) -> None:
    """Raises UserError where runs cut their examples into different rows."""
    names = (*LengthSettings.__annotations__, "vocab_fingerprint")
    cuts = []
    for run in runs:
        metadata = native.read_metadata(best_folder(run))
        cuts.append({name: metadata.get(name) for name in names})
        for name in names:
            if cuts[-1][name] != cuts[0][name]:
                raise UserError(
                    f"{run} has {name} {cuts[-1][name]}, {runs[0]} has "
                    f"{cuts[0][name]}: their windows differ, so that scores of spans cannot be "
                    "added up. Name runs with the same lengths and vocabulary."
                )
