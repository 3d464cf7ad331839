"""Checkpoints: those that are due, those that another hook needs, and the one before the decay."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import tensorflow as tf

from albert_tf.training import checkpoint_files
from albert_tf.training.checkpoint_files import checkpoints_dir
from albert_tf.training.hooks.base import Hook, Run, Stop
from data_pipeline.files import atomic_files

# Subfolder with the checkpoint from right before the decay of the learning rate. A longer run
# resumes from it; newer checkpoints do not replace it.
_BEFORE_DECAY = "before_decay"


class Checkpoints(Hook):
    """Saves sound weights; `last_saved` is the step of the newest checkpoint."""

    def __init__(
        self, run: Run, decay_start: int | None, before_save: Sequence[Callable[[], None]]
    ) -> None:
        """decay_start: see `train`. before_save: called before each save, to sync files to disk."""
        self._run, self._decay_start, self._before_save = run, decay_start, before_save
        self._is_due = False
        self.last_saved = run.state.step

    def next_stop(self, step: int) -> int | None:
        """The start of the decay, which gets a checkpoint even if none is due."""
        is_ahead = self._decay_start is not None and step < self._decay_start
        return self._decay_start if is_ahead else None

    def after(self, stop: Stop) -> None:
        """Begins to write a checkpoint if one is due or needed."""
        self._is_due |= self._run.settings.is_due(stop.step, self._run.settings.checkpoint_steps)
        self._is_due |= stop.needs_checkpoint or stop.step == self._decay_start
        # After a skipped step, a checkpoint stays due until the next sound stop.
        if self._is_due and stop.is_sound:
            for make_safe in self._before_save:
                make_safe()
            self._run.state.save()
            self.last_saved, self._is_due = stop.step, False

    def before(self, step: int) -> None:
        """Keeps the checkpoint of the step at which the decay begins, and prints a note."""
        if step != self._decay_start or step == 0:
            return
        # Not in `after`, which only starts the thread that writes the checkpoint.
        self._run.state.wait()
        if not self._run.is_chief:
            return
        if _keep(checkpoints_dir(self._run.run_dir), step):
            text = "its checkpoint is kept: with more num_train_steps the run resumes from here"
        else:
            text = "it has no checkpoint: a longer run cannot resume from here"
        self._run.reporter.note(f"the learning rate falls from step {step} on; {text}")


def go_back(run_dir: str, decay_start: int) -> None:
    """Returns to the checkpoint from before the decay if the decay has moved to a later step."""
    directory = checkpoints_dir(run_dir)
    kept = os.path.join(directory, _BEFORE_DECAY)
    step = max(checkpoint_files.with_index(kept), default=None)
    if step is None or step >= decay_start:
        return
    # Put the kept checkpoint back, then remove the checkpoints of the decay, newest first, and the
    # kept copy last: wherever a call is killed, the next one can finish its work.
    if step not in checkpoint_files.with_index(directory):
        _copy(kept, directory, step)
    later = [found for found in checkpoint_files.find(directory) if found > step]
    for other in reversed(later):
        checkpoint_files.remove(directory, other)
    tf.io.gfile.rmtree(kept)
    if later:
        print(
            f"the decay now begins at step {decay_start}: resuming from step {step}, before the "
            "former decay; its updates are repeated at the full rate",
            flush=True,
        )


def _keep(directory: str, step: int) -> bool:
    """Keeps a copy of a step's checkpoint, unless there is one; False if there is no checkpoint."""
    kept = os.path.join(directory, _BEFORE_DECAY)
    if step in checkpoint_files.with_index(kept):
        return True
    if step not in checkpoint_files.with_index(directory):
        return False
    _copy(directory, kept, step)
    for other in set(checkpoint_files.find(kept)) - {step}:
        checkpoint_files.remove(kept, other)
    return True


def _copy(source: str, target: str, step: int) -> None:
    """Copies the files of a checkpoint, index last: a partial copy does not count as one."""
    tf.io.gfile.makedirs(target)
    names = [name for name in tf.io.gfile.listdir(source) if name.startswith(f"step-{step}.")]
    for name in sorted(names, key=lambda name: name.endswith(".index")):
        atomic_files.copy(os.path.join(source, name), os.path.join(target, name))
