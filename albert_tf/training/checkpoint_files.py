"""The files of a run's checkpoints, found by their names: step-1000.index, step-1000.data-...

A checkpoint is written to a folder of its own, step-1000_unfinished. Its files get their final
names only once all of them are on disk, the index last.
"""

from __future__ import annotations

import os
import re

import tensorflow as tf

from albert_tf.errors import UserError
from data_pipeline.files import atomic_files, storage

_NAME = re.compile(r"step-(\d+)\.(?:index|data-\d{5}-of-\d{5})")
_PART = re.compile(r"step-(\d+)\.data-\d{5}-of-(\d{5})")
_LEFTOVER = re.compile(r"step-(\d+)_(?:unfinished|temp\w*)")


def checkpoints_dir(run_dir: str) -> str:
    """The folder of a run's checkpoints."""
    return os.path.join(run_dir, "checkpoints")


def path_of(directory: str, step: int) -> str:
    """The path of a step's checkpoint as TensorFlow takes it, without file name extensions."""
    return os.path.join(directory, f"step-{step}")


def find(directory: str) -> list[int]:
    """The steps of the checkpoints in a folder, complete or not, in ascending order."""
    matches = map(_NAME.fullmatch, storage.names_in(directory))
    return sorted({int(match[1]) for match in matches if match})


def with_index(directory: str) -> list[int]:
    """The steps of the checkpoints in a folder that have their index, in ascending order."""
    names = storage.names_in(directory)
    return [step for step in find(directory) if f"step-{step}.index" in names]


def missing(directory: str, step: int) -> str | None:
    """Name of a file that a step's checkpoint lacks: "step-4.index"; None if it is complete."""
    names = set(storage.names_in(directory))
    parts = [match for match in map(_PART.fullmatch, names) if match and int(match[1]) == step]
    count = int(parts[0][2]) if parts else 1
    wanted = [f"step-{step}.data-{part:05d}-of-{count:05d}" for part in range(count)]
    return next((name for name in (f"step-{step}.index", *wanted) if name not in names), None)


def check_steps(run_dir: str, num_train_steps: int) -> None:
    """Raises UserError if the run in a folder has made more than `num_train_steps` updates."""
    done = max(find(checkpoints_dir(run_dir)), default=0)
    if done > num_train_steps:
        raise UserError(
            f"the run in --output_dir={run_dir} has already made {done} updates, more than "
            f"num_train_steps {num_train_steps}. Ask for {done} or more, or pass "
            "--overwrite to delete that run and start over."
        )


def unfinished(directory: str, step: int) -> str:
    """The path to which the checkpoint of a step is written until `publish`; makes its folder."""
    folder = _unfinished_folder(directory, step)
    tf.io.gfile.makedirs(folder)
    return path_of(folder, step)


def publish(directory: str, step: int, keep: int) -> None:
    """Gives the files of an unfinished checkpoint their final names, and removes all checkpoints
    but the last `keep` up to this step.
    """
    # A kill between any two lines leaves the older checkpoints, and this one unfinished or whole:
    #   before the renames     its folder, which the next start removes (`remove_unfinished`)
    #   between the renames    data without an index, which it removes as well
    #   after the last rename  a whole checkpoint, and at most too many old ones
    folder = _unfinished_folder(directory, step)
    atomic_files.sync_tree(folder)  # A file system may store the new names before the content.
    names = filter(_NAME.fullmatch, tf.io.gfile.listdir(folder))
    # The index last: TensorFlow finds the data through it, so no reader sees half a checkpoint.
    for name in sorted(names, key=lambda name: name.endswith(".index")):
        old, new = os.path.join(folder, name), os.path.join(directory, name)
        tf.io.gfile.rename(old, new, overwrite=True)
    atomic_files.sync(directory)
    tf.io.gfile.rmtree(folder)
    # Later checkpoints go, too: they must be damaged, or the run would have resumed from them.
    kept = [found for found in find(directory) if found <= step][-keep:]
    for other in set(find(directory)) - set(kept):
        remove(directory, other)
    # TensorFlow's own list, for other programs: nothing here reads it.
    lines = [f'model_checkpoint_path: "step-{step}"']
    lines += [f'all_model_checkpoint_paths: "step-{found}"' for found in kept]
    atomic_files.write_text(os.path.join(directory, "checkpoint"), "\n".join(lines) + "\n")


def remove_unfinished(directory: str) -> None:
    """Removes the files that interrupted saves have left."""
    names = storage.names_in(directory)
    for match in filter(None, map(_LEFTOVER.fullmatch, names)):
        if f"step-{match[1]}.index" not in names:
            remove(directory, int(match[1]))  # Data files that already had their final names.
        tf.io.gfile.rmtree(os.path.join(directory, match[0]))


def _unfinished_folder(directory: str, step: int) -> str:
    return f"{path_of(directory, step)}_unfinished"


def remove(directory: str, step: int) -> None:
    """Removes a checkpoint, index first, so that files left after a kill do not count as one."""
    names = [name for name in storage.names_in(directory) if name.startswith(f"step-{step}.")]
    for name in sorted(names, key=lambda name: not name.endswith(".index")):
        tf.io.gfile.remove(os.path.join(directory, name))
