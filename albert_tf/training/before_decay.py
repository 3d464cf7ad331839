"""The checkpoint from right before the decay of the rate, from which a longer run goes on.

It lies in checkpoints/before_decay, where newer checkpoints do not replace it.
"""

from __future__ import annotations

import os

import tensorflow as tf

from albert_tf import durable
from albert_tf.training import checkpoint_files

_FOLDER = "before_decay"


def keep(directory: str, step: int) -> bool:
    """Copies a step's checkpoint aside, unless it is there; False if there is no checkpoint.

    Args:
      directory: of the checkpoints.
      step: the last one at the highest rate.
    """
    kept = os.path.join(directory, _FOLDER)
    if step in checkpoint_files.whole(kept):
        return True
    if step not in checkpoint_files.whole(directory):
        return False
    _copy(directory, kept, step)
    for other in set(checkpoint_files.find(kept)) - {step}:
        checkpoint_files.remove(kept, other)
    return True


def go_back(directory: str, decay_start: int) -> int | None:
    """Makes the kept checkpoint the newest if the decay that followed it now begins later.

    The checkpoints of that decay are removed, the kept one last: a call that was interrupted is
    finished by the next one.

    Args:
      directory: of the checkpoints.
      decay_start: the step at which the decay now begins.

    Returns:
      The step of the kept checkpoint if the run goes back to it; None if it does not.
    """
    kept = os.path.join(directory, _FOLDER)
    step = max(checkpoint_files.whole(kept), default=None)
    if step is None or step >= decay_start:
        return None
    if step not in checkpoint_files.whole(directory):
        _copy(kept, directory, step)
    later = [found for found in checkpoint_files.find(directory) if found > step]
    for other in reversed(later):
        checkpoint_files.remove(directory, other)
    tf.io.gfile.rmtree(kept)
    return step if later else None


def _copy(source: str, target: str, step: int) -> None:
    """Copies the files of a checkpoint, the index last: without it the rest is no checkpoint."""
    tf.io.gfile.makedirs(target)
    names = [name for name in tf.io.gfile.listdir(source) if name.startswith(f"step-{step}.")]
    for name in sorted(names, key=lambda name: name.endswith(".index")):
        path = os.path.join(target, name)
        tf.io.gfile.copy(os.path.join(source, name), f"{path}.part", overwrite=True)
        durable.sync(f"{path}.part")
        tf.io.gfile.rename(f"{path}.part", path, overwrite=True)
    durable.sync(target)
