"""The description of a training run by dataclasses, for `run_experiment`.

Experiment      an objective with its data, evaluation and results
  RunSettings   the folder, the optimizer, the loop
  TrainingData  batches, their sizes and their origin
  ModelFolders  the models that are kept
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models.objectives import Objective
from albert_tf.training.batch_sizes import BatchSizes
from albert_tf.training.evaluation import HeldOutScores
from albert_tf.training.memory import check_training_memory
from albert_tf.training.settings import RunSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The examples that a run is trained on.

    Attributes:
      name: for messages, a folder or file.
      batches: function of `start_step=`, and of `input_context=` if several hosts read; returns
        endless global batches from that step on.
      batch_size: B, the number of examples in a global batch, or in the largest if sizes change.
      seed: decides the order of the examples, and dropout.
      num_examples: None if they are not counted.
      max_seq_length: S.
      vocab_size: V.
      must_not_change: other settings that determine the batches, by name; a run resumes only if
        they are unchanged.
      tokens_per_example: average number of tokens without padding, for the speed in reports; None
        means S.
      describe_batch: maps a step (1-based) to the file and position of its batch; None: not known.
      batch_sizes: B of each step; None: always the same. `batches` begins with batches of the size
        at `start_step`, and is called again at each change.
      explain: maps an error that TensorFlow raised in training to the one to raise instead.
    """

    name: str
    batches: Callable[..., tf.data.Dataset]
    batch_size: int
    seed: int
    num_examples: int | None
    max_seq_length: int
    vocab_size: int
    must_not_change: Mapping[str, Any]
    tokens_per_example: float | None = None
    describe_batch: Callable[[int], str] | None = None
    batch_sizes: BatchSizes | None = None
    explain: Callable[[tf.errors.OpError], Exception] = lambda error: error

    @property
    def sizes(self) -> BatchSizes:
        """B of each step."""
        return self.batch_sizes or BatchSizes.of(self.batch_size)


@dataclasses.dataclass(frozen=True)
class ModelFolders:
    """The model folders that a run keeps, see `native.save`.

    Attributes:
      best: name, in the folder of the run, of the best model's folder.
      last: name of the last model's folder; None: it is not kept.
      metric: name of the held-out figure that decides which is best.
      higher_is_better: whether the largest figure is the best.
      metadata: entries of model.json besides the objective's.
      vocab_file: path of their vocabulary.
      tokenizer: the content of tokenizer_settings.json.
      result: name of the folder that the run is made for; None: the last model's, if it is kept.
    """

    best: str
    last: str | None
    metric: str
    higher_is_better: bool
    metadata: Mapping[str, Any]
    vocab_file: str
    tokenizer: dict[str, Any]
    result: str | None = None


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A training run.

    Attributes:
      title: the first line of the start-up card.
      objective: the model, its losses and metrics. The run computes on the devices of the
        strategy in whose scope the model was made.
      model_to_keep: the part of the objective's model that is saved; None: all of it.
      data: the examples that it is trained on.
      settings: folder, optimizer and loop.
      models: the model folders that are kept.
      flops_per_token: operations of a training step for one token, forward and backward.
      evaluator: computes the held-out figures, as an Evaluator does; None: there are none.
      card: further figures for the start-up card, by name.
      examples: returns predictions on held-out data as Markdown, for TensorBoard.
      notice: see `Callbacks` (hooks/base.py).
      print_results: called at the end with the held-out figures, to print them.
      next_commands: called at the end; returns command lines that use the result, to be printed.
    """

    title: str
    objective: Objective
    data: TrainingData
    settings: RunSettings
    models: ModelFolders
    flops_per_token: float
    model_to_keep: keras.Model | None = None
    evaluator: HeldOutScores | None = None
    card: Mapping[str, str] = dataclasses.field(default_factory=dict)
    examples: Callable[[], str] | None = None
    notice: Callable[[int, dict[str, float]], str | None] | None = None
    print_results: Callable[[dict[str, float]], None] | None = None
    next_commands: Callable[[], Sequence[str]] = lambda: ()

    @property
    def kept(self) -> keras.Model:
        """The model that is saved."""
        return self.objective.model if self.model_to_keep is None else self.model_to_keep

    def path(self, name: str) -> str:
        """Path of a file or folder in the folder of the run."""
        return os.path.join(self.settings.output_dir, name)


def check(experiment: Experiment) -> None:
    """Raises UserError if a batch would hold an example twice, cannot be divided or does not fit
    into memory, if no variable is trainable, or if settings exclude each other.
    """
    model, data, settings = experiment.objective.model, experiment.data, experiment.settings
    strategy, num_parts = model.distribute_strategy, settings.gradient_accumulation_steps
    minutes, sizes, reason = settings.loop.max_minutes, data.sizes, ""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        reason = "measures time on one machine, but there are several workers"
    elif not sizes.is_constant:
        reason = f"plans the last update from the speed of training, which {sizes.flag} changes"
    if minutes and reason:
        raise UserError(
            f"--max_minutes={minutes:g} {reason}. Set the number of updates with --num_train_steps."
        )
    if not model.trainable_variables:
        raise UserError("the model has no trainable variable: all of its parts are frozen.")
    if settings.jit_compile and model.encoder.packed:
        raise UserError(
            "--packed=true does not work with --jit_compile, which needs fixed shapes. Make the "
            "model with packed=False."
        )
    if data.num_examples is not None and data.batch_size > data.num_examples:
        raise UserError(
            f"{sizes.flag} is more than the {data.num_examples} examples of {data.name}: an update "
            f"would see some of them twice. Use at most {data.num_examples}."
        )
    sizes.check(strategy.num_replicas_in_sync, num_parts)
    check_training_memory(
        model.config, data.batch_size, num_parts, data.max_seq_length, strategy, sizes.flag
    )
