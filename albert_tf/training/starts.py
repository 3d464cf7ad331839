"""The starts of a run: the flags of each, and what may differ from one to the next."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.errors import UserError
from data_pipeline.files import atomic_files, sealed, storage

FOLDER = "starts"
FLAGS_FILE, ENVIRONMENT_FILE = "flags.json", "environment.json"
# Changes after which a run does not resume, unless --allow_changes names them.
CHANGES = ("optimizer", "precision", "init_checkpoint")

# These describe a start, not the run.
_OF_ONE_START = ("allow_changes", "max_failures", "overwrite", "output_dir")
_REASONS = {
    "optimizer": "the moments in its checkpoints mean something else",
    "bias_correction": "the moments in its checkpoints mean something else",
    "ema_decay": "only checkpoints with ema_decay have averages of the weights",
    "precision": "only checkpoints of mixed_float16 have a loss scale",
    "init_checkpoint": "it would not be read, since the run resumes from its own checkpoints",
}


def _flags_of_checkpoints(run_dir: str, newest_step: int) -> dict[str, Any]:
    """The flags of the newest start that made a checkpoint; of the last one if none did."""
    folder = os.path.join(run_dir, FOLDER)
    for number in reversed(_numbers(folder)):
        path = os.path.join(folder, f"{number:04}.json")
        start = read_run_json(path, f"Delete it to use the starts before it ({FOLDER}/)")
        # Different, not larger: a start that finds damaged checkpoints resumes from an older one.
        if start["newest_checkpoint"] != newest_step:
            return start["flags"]
    flags = last_flags(run_dir)
    if not flags:
        path = os.path.join(run_dir, FLAGS_FILE)
        print(f"{path} is missing: changes of flags are not detected.", flush=True)
    return flags


def last_flags(run_dir: str) -> dict[str, Any]:
    """The flags of the last start of a run; {} if there is none."""
    path = os.path.join(run_dir, FLAGS_FILE)
    if not tf.io.gfile.exists(path):
        return {}
    return read_run_json(path, f"Restore it from the object `flags` in the last file in {FOLDER}/")


def _numbers(folder: str) -> list[int]:
    """The numbers of the starts in a folder, in ascending order."""
    names = storage.names_in(folder)
    return [int(name[:4]) for name in names if re.fullmatch(r"\d{4}\.json", name)]


def check_changes(
    run_dir: str, flags: dict[str, Any], newest_step: int, allowed: Sequence[str]
) -> None:
    """Prints flags that had other values when the newest checkpoint (0: there is none) was made; a
    UserError for a change that prevents resuming and is not `allowed`.
    """
    last = _flags_of_checkpoints(run_dir, newest_step)
    changes = {
        name: (last[name], value)
        for name, value in flags.items()
        if name in last and name not in _OF_ONE_START and last[name] != value
    }
    for name, (old, new) in changes.items():
        kind = _kind(name, old, new)
        if kind and kind not in allowed:
            raise UserError(
                f"--{name}={new}: the run in --output_dir={run_dir} was started with --{name}="
                f"{old}, and {_REASONS[name]}. Use what it was started with, or --allow_changes="
                f"{kind} to resume anyway, or another folder with --init_checkpoint for the "
                "run's weights, or --overwrite to delete it."
            )
    if changes:
        lines = [f"  --{name}: {old} -> {new}" for name, (old, new) in sorted(changes.items())]
        print("Changed since the last start of this run:", *lines, sep="\n", flush=True)


def _kind(name: str, old: Any, new: Any) -> str | None:
    """The one of CHANGES that a flag's change belongs to; None: a run can resume with it."""
    # With any ema_decay other than 0, the checkpoints hold the same variables.
    if name in ("optimizer", "bias_correction") or (name == "ema_decay" and 0 in (old, new)):
        return "optimizer"
    if name == "precision" and "mixed_float16" in (old, new):
        return "precision"
    # A resumed run does not read it, so it may be left out.
    if name == "init_checkpoint" and new is not None:
        return "init_checkpoint"
    return None


def record(
    run_dir: str, flags: dict[str, Any], environment: dict[str, str], newest_step: int
) -> None:
    """Writes flags.json and environment.json of this start, and both to starts/0001.json."""
    folder = os.path.join(run_dir, FOLDER)
    tf.io.gfile.makedirs(folder)
    start = {
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "newest_checkpoint": newest_step,
        "environment": environment,
        "flags": flags,
    }
    path = os.path.join(folder, f"{max(_numbers(folder), default=0) + 1:04}.json")
    write_run_json(path, start)
    atomic_files.write_json(os.path.join(run_dir, ENVIRONMENT_FILE), environment, sort_keys=True)
    write_run_json(os.path.join(run_dir, FLAGS_FILE), flags)


def write_run_json(path: str, values: Mapping[str, Any], names: Sequence[str] = ()) -> None:
    """Writes a file of a run folder with its hash, and the hashes of other files there."""
    hashes = sealed.hashes_of(os.path.dirname(path), names)
    atomic_files.write_json(path, sealed.seal(values, hashes), sort_keys=True)


def read_run_json(path: str, remedy: str) -> dict[str, Any]:
    """The JSON object in a file of a run folder; a UserError with a remedy if it, or a file whose
    hash is in it, is damaged.
    """
    advice = f"{remedy}, or pass --overwrite to delete the run and start over."
    found = sealed.read(path, advice)
    found.check(os.path.dirname(path), found.hashes, advice)
    return found.values


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as they would be read back from a JSON file; NumPy's numbers become Python's."""
    return json.loads(json.dumps(dict(values), default=_number))


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} of {type(value)} cannot be written to a file of the run.")
