"""What a run keeps on disk to go on after an interruption: model, optimizer and step."""

from __future__ import annotations

import os

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras


class TrainingState:
    """Checkpoints of model and optimizer; the step is the optimizer's.

    The data need no checkpoint: their order is a function of seed and step.
    """

    def __init__(
        self, directory: str, model: keras.Model, optimizer: keras.optimizers.Optimizer, keep: int
    ) -> None:
        """Args: directory: of the checkpoints. keep: how many of the newest are kept."""
        self._optimizer = optimizer
        self._checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, directory, max_to_keep=keep, checkpoint_name="step"
        )

    @property
    def step(self) -> int:
        """How many updates have been made."""
        return int(self._optimizer.iterations.numpy())

    @property
    def latest(self) -> str | None:
        """The newest checkpoint, if there is one."""
        return self._manager.latest_checkpoint

    def save(self) -> None:
        """Writes a checkpoint of this step, unless it exists."""
        path = os.path.join(self._manager.directory, f"step-{self.step}")
        if self.latest != path:
            self._manager.save(checkpoint_number=self.step)

    def restore(self) -> bool:
        """Goes back to the newest checkpoint; False when there is none.

        Raises:
          UserError: the checkpoint is of another model or damaged.
        """
        if self.latest is None:
            return False
        try:
            self._checkpoint.restore(self.latest).assert_existing_objects_matched()
        except (ValueError, AssertionError, tf.errors.OpError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(
                f"checkpoint {self.latest} does not fit this model or is damaged: {reason} Use "
                "another --output_dir, or --overwrite to start over."
            ) from None
        return True
