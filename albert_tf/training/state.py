"""What a run keeps on disk to go on after an interruption: model, optimizer and step."""

from __future__ import annotations

import os

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras


def checkpoints_dir(run_dir: str) -> str:
    """Where a run keeps its checkpoints."""
    return os.path.join(run_dir, "checkpoints")


class TrainingState:
    """Checkpoints of model and optimizer, written beside the training.

    The step is the optimizer's. It is the position in the data, too: order and masks are functions
    of seed and step. A save copies the variables at once and writes them in another thread; it
    becomes the newest checkpoint only when all of it is on disk.
    """

    def __init__(
        self,
        directory: str,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        keep: int,
        loss_scale: tf.Variable | None = None,
        is_chief: bool = True,
    ) -> None:
        """Args:
        directory: of the checkpoints.
        keep: how many of the newest are kept.
        loss_scale: of float16 training, which is part of its state.
        is_chief: whether this process writes; of several workers one does.
        """
        self._optimizer = optimizer
        self._is_chief = is_chief
        parts = {"loss_scale": loss_scale} if loss_scale is not None else {}
        self._checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, **parts)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, directory, max_to_keep=keep, checkpoint_name="step"
        )
        self._saved_step = -1
        if is_chief:
            self._remove_unfinished()

    def _remove_unfinished(self) -> None:
        """A save that was interrupted leaves a temporary folder."""
        for path in tf.io.gfile.glob(os.path.join(self._manager.directory, "step-*_temp*")):
            if tf.io.gfile.isdir(path):
                tf.io.gfile.rmtree(path)

    @property
    def step(self) -> int:
        """How many updates have been made, and batches used."""
        return int(self._optimizer.iterations.numpy())

    @property
    def latest(self) -> str | None:
        """The newest checkpoint that is complete, if there is one."""
        return self._manager.latest_checkpoint

    def save(self) -> None:
        """Begins to write a checkpoint of this step, unless there is one."""
        if not self._is_chief or self._saved_step == self.step:
            return
        self._saved_step = self.step
        options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
        self._manager.save(checkpoint_number=self.step, options=options)

    def wait(self) -> None:
        """Returns when the last save is complete."""
        if self._saved_step >= 0 and self._is_chief:
            self._checkpoint.sync()

    def restore(self) -> bool:
        """Goes back to the newest checkpoint that can be read; False when there is none.

        Raises:
          UserError: the checkpoint is of another model, or all of them are damaged.
        """
        if self.latest is None:
            return False
        problems = []
        for path in reversed(self._manager.checkpoints):
            try:
                self._checkpoint.restore(path).assert_existing_objects_matched()
            except (ValueError, AssertionError) as error:
                raise UserError(
                    f"checkpoint {path} does not fit this model: {_first_line(error)} Use another "
                    "--output_dir, or --overwrite to start over."
                ) from None
            except (tf.errors.OpError, IndexError) as error:  # IndexError: a file is too short.
                problems.append(f"checkpoint {path} is damaged: {_first_line(error)}")
                continue
            self._saved_step = self.step
            for problem in problems:
                print(f"{problem} Going back to {path}.", flush=True)
            return True
        raise UserError(
            f"{' '.join(problems)} No other checkpoint is left. Use another --output_dir, or "
            "--overwrite to start over."
        )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
