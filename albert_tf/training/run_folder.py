"""The folder of a run: records of its starts, and the checks before one is continued there.

flags.json  environment.json                        flags and software of the last start
starts/                                             the same of each start, see starts.py
albert_config.json  run.json                        settings that a continued run may not change
run.lock                                            while a process trains there
minutes.json                                        see hooks/deadline.py
partial_report.json                                 see hooks/preemption.py
checkpoints/                                        to resume from
metrics.csv  tensorboard/  curves.png               its figures
model/                                              the result, see checkpoints/native.py
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import literal_paths
from albert_tf.checkpoints.native import CONFIG_FILE, METADATA_FILE
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.training import checkpoint_files, starts
from data_pipeline.files import atomic_files, lock, storage

LOCK_FILE = "run.lock"
RUN_FILE = "run.json"
# The only files that a start that was killed early can leave, see `claim`.
_WRITTEN_FIRST = {CONFIG_FILE, LOCK_FILE, starts.FOLDER, starts.FLAGS_FILE, starts.ENVIRONMENT_FILE}


def claim(
    run_dir: str,
    config: AlbertConfig,
    flags: dict[str, Any],
    must_not_change: dict[str, Any],
    overwrite: bool,
    allowed: Sequence[str] = (),
) -> contextlib.AbstractContextManager:
    """Makes the folder of a run, or checks that the run in it can be continued, and locks it.

    Args:
      flags: of this start, to be recorded.
      must_not_change: settings that determine the batches, by name; a run resumes only if they are
        unchanged.
      overwrite: whether a run found in the folder is deleted.
      allowed: names in starts.CHANGES, changes with which a run may resume; a run without a
        checkpoint or a model begins anew, so all of them are allowed.

    Returns:
      The lock, a context; it is released at the context's end, or when the process ends.

    Raises:
      UserError: the folder holds a run of another model or on other data, or files that are not a
        run, or another process trains there.
    """
    literal_paths.check_remote(run_dir)
    flags, must_not_change = starts.as_json(flags), starts.as_json(must_not_change)
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock.locked(run_dir, LOCK_FILE))
        if not holds_run(run_dir) and _names_in(run_dir) - _WRITTEN_FIRST:
            raise UserError(
                f"--output_dir={run_dir} is not empty and holds no run. Name a new folder."
            )
        tf.io.gfile.makedirs(run_dir)
        if overwrite:
            _empty(run_dir)
        newest = max(checkpoint_files.find(checkpoint_files.checkpoints_dir(run_dir)), default=0)
        if holds_run(run_dir):
            last_config, before = read(run_dir)
            if last_config.replace(recompute=config.recompute) != config:
                raise UserError(
                    f"--output_dir={run_dir} holds a run of a model with another configuration. "
                    "Name another folder, or pass --overwrite to delete that run and start over."
                )
            _check_unchanged(run_dir, must_not_change, before)
            # If no weights were saved, there is nothing that a change could conflict with.
            if not newest and not _holds_model(run_dir):
                allowed = starts.CHANGES
            starts.check_changes(run_dir, flags, newest, allowed)
        # RUN_FILE marks the folder as a run, and is written last. A start killed before that leaves
        # at most _WRITTEN_FIRST, which the next start accepts.
        atomic_files.write_json(os.path.join(run_dir, CONFIG_FILE), config.to_dict())
        starts.record(run_dir, flags, environment(), newest)
        starts.write_run_json(os.path.join(run_dir, RUN_FILE), must_not_change, [CONFIG_FILE])
        return stack.pop_all()


def delete(run_dir: str) -> None:
    """Deletes the run in a folder, if there is one; a UserError if another process trains there."""
    if holds_run(run_dir):
        with lock.locked(run_dir, LOCK_FILE):
            _empty(run_dir)


def holds_run(run_dir: str) -> bool:
    """Whether there is a run in a folder, finished or not."""
    return tf.io.gfile.exists(os.path.join(run_dir, RUN_FILE))


def _holds_model(run_dir: str) -> bool:
    """Whether the folder of a run contains a model folder, of any name."""
    paths = (os.path.join(run_dir, name, METADATA_FILE) for name in storage.names_in(run_dir))
    return any(map(tf.io.gfile.exists, paths))


def _names_in(run_dir: str) -> set[str]:
    """The names in a folder except leftovers of interrupted writes; empty without a folder."""
    return {name for name in storage.names_in(run_dir) if not name.endswith(".partial")}


def _empty(run_dir: str) -> None:
    """Removes all but the lock, which is held."""
    # RUN_FILE comes last: after a kill in between, the folder is still a run, which another start
    # with --overwrite may delete. Without it, it would be refused as a folder of unknown files.
    names = _names_in(run_dir) - {LOCK_FILE}
    for name in sorted(names, key=lambda name: name == RUN_FILE):
        path = os.path.join(run_dir, name)
        remove = tf.io.gfile.rmtree if tf.io.gfile.isdir(path) else tf.io.gfile.remove
        remove(path)


def _check_unchanged(run_dir: str, must_not_change: dict[str, Any], before: dict[str, Any]) -> None:
    """Raises UserError if the batches would differ from the run's so far."""
    # Earlier versions did not record these, and had only these values.
    defaults = {"teacher": None, "recurring_mask_share": 0.0, "segments": "fixed"}
    before = {**defaults, "mask_schedule": None, **before}
    changes = [
        f"{name} was {old!r} and is {must_not_change[name]!r}"
        for name, old in before.items()
        if name in must_not_change and must_not_change[name] != old
    ]
    if changes:
        raise UserError(
            f"--output_dir={run_dir} holds a run that was started differently: "
            f"{'; '.join(changes)}. It cannot resume like this. Use what it was started with, "
            "or another folder with --init_checkpoint for its weights, or --overwrite to delete it."
        )


def read(run_dir: str) -> tuple[AlbertConfig, dict[str, Any]]:
    """The configuration of a run's model, and the `must_not_change` that `claim` recorded."""
    if not holds_run(run_dir):
        raise UserError(f"--output_dir={run_dir} holds no run ({RUN_FILE}). Start one there.")
    remedy = "Restore it from a copy if you have one"
    must_not_change = starts.read_run_json(os.path.join(run_dir, RUN_FILE), remedy)
    return AlbertConfig.from_json_file(os.path.join(run_dir, CONFIG_FILE)), must_not_change


def fingerprint(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of arrays with their names, for `must_not_change` of `claim`."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()


def environment() -> dict[str, str]:
    """Versions of the software that a result depends on."""
    found = {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "platform": platform.platform(),
    }
    revision = _git_revision()
    return {**found, "git_revision": revision} if revision else found


def _git_revision() -> str | None:
    """Commit of this source code, with -dirty for local changes; None if it is not in git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    source = os.path.dirname(os.path.abspath(__file__))
    try:
        result = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
