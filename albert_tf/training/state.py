"""The state of a run on disk, from which it resumes: model, optimizer and step."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
from collections.abc import Iterator

import absl.logging
import tensorflow as tf

from albert_tf.checkpoints import literal_paths
from albert_tf.errors import UserError, message_of
from albert_tf.keras_compat import keras
from albert_tf.training import checkpoint_files
from albert_tf.training.report.metrics_file import METRICS_FILE, read_metrics
from albert_tf.training.settings import LoopSettings
from albert_tf.training.steps import Stepper
from albert_tf.training.strategy import is_chief

# TensorFlow's errors for truncated or altered files; IndexError: a file is too short.
_DAMAGE = (
    tf.errors.DataLossError,
    tf.errors.OutOfRangeError,
    tf.errors.InvalidArgumentError,
    IndexError,
)
# TensorFlow's reader in Python raises a plain OpError for most of them.
_SIGNS_OF_DAMAGE = re.compile(
    "sstable|corrupt|checksum|truncated|bad (block|entry)|read (less|fewer)", re.I
)


class TrainingState:
    """The checkpoints of a model and its optimizer, written while training goes on.

    save -> _write (copies; starts the thread) -> _publish (in the thread) -> wait -> close
    """

    # The optimizer's step is the position in the data, too: order, masks and dropout are functions
    # of seed and step. So a checkpoint holds all that a run needs to resume bit by bit.
    #
    # A save copies the variables at once and writes them in another thread. It is complete when
    # that thread has given the files their names, see checkpoint_files.py. In mixed precision
    # nothing is copied and no thread is started: TensorFlow 2.15 does not copy variables that Keras
    # casts, so the thread would write values that training has changed meanwhile.

    def __init__(
        self,
        directory: str,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        keep: int,
        loss_scaling: keras.mixed_precision.LossScaleOptimizer | None = None,
        is_chief: bool = True,
        must_match: bool = True,
    ) -> None:
        """
        Args:
          keep: number of checkpoints that are kept, the newest ones.
          loss_scaling: the scale of float16 training, which is part of its state.
          must_match: False: a checkpoint may lack a loss scale or be of another optimizer, whose
            moments are restored if they are of the same kind.
        """
        self._directory, self._keep = directory, keep
        self._model, self._optimizer = model, optimizer
        self._is_chief = is_chief
        self._must_match = must_match
        self._copies = model.compute_dtype == model.variable_dtype
        self._scale = {"loss_scale": loss_scaling} if loss_scaling is not None else {}
        self._checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, **self._scale)
        self._checkpoint.save_counter  # noqa: B018  Made on first access; every checkpoint has it.
        # Steps; -1: none. The thread that writes sets _latest, the main thread sets _under_way; if
        # they differ when the writing thread is done, the save has failed.
        self._latest = -1
        self._under_way = -1
        if is_chief:
            checkpoint_files.remove_unfinished(directory)

    @property
    def step(self) -> int:
        """The number of updates made, and of batches used."""
        return int(self._optimizer.iterations.numpy())

    @property
    def latest(self) -> str | None:
        """Path of the newest checkpoint that is complete, if there is one."""
        if self._latest < 0:
            return None
        return checkpoint_files.path_of(self._directory, self._latest)

    @tf.function(autograph=False)
    def _all_finite(self) -> tf.Tensor:
        variables = [*self._model.variables, *self._optimizer_variables()]
        return tf.reduce_all(
            [tf.reduce_all(tf.math.is_finite(v)) for v in variables if v.dtype.is_floating]
        )

    def _optimizer_variables(self) -> list[tf.Variable]:
        variables = self._optimizer.variables
        return variables() if callable(variables) else variables  # A method in older Keras.

    def is_finite(self) -> bool:
        """Whether all weights and moments are finite; one that is not never recovers."""
        return bool(self._all_finite())

    def save(self) -> None:
        """Begins to write a checkpoint of this step on the chief, unless there is one."""
        if not self._is_chief:
            return
        self.wait()  # One save at a time: an error of the last one is raised here.
        if self._latest != self.step:
            self._under_way = self.step
            if self._copies:
                self._write()
            else:
                self.wait()

    def _write(self) -> None:
        """Copies the variables and starts the thread that writes them, or writes them itself."""
        step = self._under_way
        options = tf.train.CheckpointOptions(
            experimental_enable_async_checkpoint=self._copies,
            experimental_write_callbacks=[lambda: self._publish(step)],
        )
        self._checkpoint.write(checkpoint_files.unfinished(self._directory, step), options)

    def _publish(self, step: int) -> None:
        """Publishes a written checkpoint; runs in the thread that has written it."""
        checkpoint_files.publish(self._directory, step, self._keep)
        self._latest = step

    def wait(self) -> None:
        """Returns when the last save is complete; raises its error if it failed."""
        if self._under_way < 0:
            return
        self._checkpoint.sync()
        try:
            if self._latest != self._under_way:
                # Either nothing was begun, or the thread failed. TensorFlow raises the thread's
                # error only at the next save, which is therefore made here.
                with _without_log():
                    self._write()
        except Exception:
            checkpoint_files.remove_unfinished(self._directory)  # There may be no room for it.
            raise
        finally:
            self._under_way = -1

    def close(self) -> None:
        """Waits, and ends the thread that writes; nothing is saved afterwards."""
        # TensorFlow ends the thread only with the process, and until then keeps the model, the
        # optimizer and their copies: a series of runs would accumulate memory.
        try:
            self.wait()
        finally:
            helper = self._checkpoint._async_checkpointer_impl
            if helper is not None:
                atexit.unregister(helper._join_async_save_thread)
                helper._join_async_save_thread()

    def restore(self) -> bool:
        """Restores the newest checkpoint that is not damaged; False if there is no checkpoint. A
        UserError if it is of another model, or all are damaged.
        """
        problems = []
        for step in reversed(checkpoint_files.find(self._directory)):
            path = checkpoint_files.path_of(self._directory, step)
            if missing := checkpoint_files.missing(self._directory, step):
                problems.append(f"checkpoint {path} is damaged: its file {missing} is missing.")
                continue
            try:
                with literal_paths.literal(path) as readable:
                    self._read(readable, step)
            except (ValueError, AssertionError) as error:
                raise UserError(
                    f"checkpoint {path} does not fit this model: {message_of(error)}. Use another "
                    "--output_dir, or the flags that the run in this one was started with."
                ) from None
            except (tf.errors.OpError, IndexError) as error:
                if not _is_damage(error):  # A disk that does not respond may recover.
                    raise
                problems.append(f"checkpoint {path} is damaged: {message_of(error)}")
                continue
            self._latest = step
            for problem in problems:
                print(f"{problem} Going back to {path}.", flush=True)
            return True
        if problems:
            raise UserError(
                f"{' '.join(problems)} No other checkpoint is left. Use another --output_dir, or "
                "--overwrite to start over."
            )
        return False

    def _read(self, path: str, step: int) -> None:
        """Restores model, optimizer and loss scale; those that exist, unless they must match."""
        if self._must_match:
            self._checkpoint.restore(path).assert_existing_objects_matched()
            return
        _read_into(path, model=self._model)
        tf.train.Checkpoint(**self._scale).read(path).expect_partial()
        try:
            _read_into(path, model=self._model, optimizer=self._optimizer)
        except (ValueError, AssertionError):
            print(f"{path} was written with another optimizer: moments start at zero.", flush=True)
            # The failed read may have restored some of them. Scalars are step and learning rate.
            for variable in self._optimizer_variables():
                if variable.shape.rank:
                    variable.assign(tf.zeros_like(variable))
            averages = getattr(self._optimizer, "averages", ())
            for average, variable in zip(averages, self._model.trainable_variables):
                average.assign(tf.convert_to_tensor(variable))
        self._optimizer.iterations.assign(step)


@contextlib.contextmanager
def opened(stepper: Stepper, settings: LoopSettings, run_dir: str) -> Iterator[TrainingState]:
    """A context with the state of a run, restored from its newest checkpoint."""
    with stepper.strategy.scope():
        stepper.optimizer.build(stepper.objective.model.trainable_variables)
        state = TrainingState(
            checkpoint_files.checkpoints_dir(run_dir),
            stepper.objective.model,
            stepper.optimizer,
            settings.keep_checkpoints,
            stepper.loss_scaling,
            is_chief(stepper.strategy),
            must_match=not {"optimizer", "precision"} & set(settings.allow_changes),
        )
        is_resumed = state.restore()
    if is_chief(stepper.strategy):
        rows = read_metrics(os.path.join(run_dir, METRICS_FILE))
        if is_resumed:
            print(f"resuming at step {state.step}", flush=True)
        elif rows:
            print(
                f"{run_dir} has figures up to step {rows[-1]['step']}, but no checkpoint: starting "
                f"again at step {state.step}",
                flush=True,
            )
    with contextlib.closing(state):
        yield state


def _read_into(path: str, **parts: tf.Module) -> None:
    """Restores all variables of objects from the parts of a checkpoint with their names."""
    checkpoint = tf.train.Checkpoint(**parts)
    checkpoint.read(path).expect_partial().assert_existing_objects_matched()


def _is_damage(error: Exception) -> bool:
    """Whether an error means that a file differs from what was written."""
    # A file system that refuses access or does not respond is not damage: a checkpoint that is
    # skipped as damaged will be deleted by the next save.
    if isinstance(error, _DAMAGE):
        return True
    is_of_reader = type(error) in (tf.errors.OpError, tf.errors.UnknownError)
    return is_of_reader and bool(_SIGNS_OF_DAMAGE.search(str(error)))


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """A context in which TensorFlow does not log the error that it raises as well."""
    before = absl.logging.get_verbosity()
    absl.logging.set_verbosity(absl.logging.FATAL)
    try:
        yield
    finally:
        absl.logging.set_verbosity(before)
