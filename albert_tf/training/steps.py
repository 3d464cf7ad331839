"""Compiled training and evaluation steps under any strategy.

train -> _replica_train_step on each replica -> _gradients, or _accumulated_gradients of them
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from albert_tf.keras_compat import keras, require_keras_2
from albert_tf.models.losses import EPSILON, Ratio
from albert_tf.models.objectives import Batch, Objective, loss_denominators, total_loss
from albert_tf.training.strategy import sum_over_workers

# Global batches, or a function that makes them.
Data: TypeAlias = tf.data.Dataset | Callable[..., tf.data.Dataset]
Gradients: TypeAlias = list[tf.Tensor | None]  # None: the loss does not depend on the variable.
_not_converted = tf.autograph.experimental.do_not_convert


class Outcome(NamedTuple):
    """The figures of some training steps.

    Attributes:
      metrics: by name, float32 scalars: the objective's metrics over all these steps, `loss`,
        and `learning_rate` and the global `gradient_norm` before clipping, both of the last step.
        Means over no step at all are nan.
      num_bad: the number of steps whose loss or gradient was not finite, int32; metrics exclude
        them.
      first_bad: the first of them, int64 (1-based); 0 without any.
      last_good: the last of the others, int64 (1-based); 0 without any.
      totals: the sums that `metrics` are computed from; the next call may continue with them.
    """

    metrics: dict[str, tf.Tensor]
    num_bad: tf.Tensor
    first_bad: tf.Tensor
    last_good: tf.Tensor
    totals: dict[str, Ratio]


class Stepper:
    """Runs an objective's training and evaluation steps; both are traced once per batch size."""

    # The gradient is that of the loss over the global batch: denominators are summed over replicas
    # and micro-batches before the division, gradients after it. So the numbers of replicas and
    # micro-batches affect the result only through rounding and dropout.

    def __init__(
        self,
        objective: Objective,
        optimizer: keras.optimizers.Optimizer | None,
        strategy: tf.distribute.Strategy,
        seed: int = 0,
        num_micro_batches: int = 1,
        jit_compile: bool = False,
    ) -> None:
        """
        Args:
          objective: the model, its losses and metrics.
          optimizer: None to evaluate only. A LossScaleOptimizer skips updates that are not finite.
          strategy: the one in whose scope model and optimizer were made.
          seed: of dropout.
          num_micro_batches: number of parts of a replica's batch that are processed one after the
            other for one update (gradient accumulation): less memory, more time.
          jit_compile: compile loss and gradient with XLA. TPUs do so in any case.
        """
        require_keras_2(optimizer)
        self.objective = objective
        self.strategy = strategy
        self.optimizer: Any = optimizer
        self.num_micro_batches = num_micro_batches
        self._jit_compile = jit_compile
        self._scaler = None
        if isinstance(optimizer, keras.mixed_precision.LossScaleOptimizer):
            self._scaler, self.optimizer = optimizer, optimizer.inner_optimizer
        self._seed = tf.constant([seed, 0], tf.int32)
        # The thread that listens for signals sets it while TensorFlow computes.
        with tf.device("CPU:0"):
            self._is_stopped = tf.Variable(False, trainable=False)

    @property
    def loss_scaling(self) -> keras.mixed_precision.LossScaleOptimizer | None:
        """The LossScaleOptimizer, if its scale varies (float16): then gradients that are not finite
        are part of the search for the scale.
        """
        varies = self._scaler is not None and self._scaler.initial_scale > 1
        return self._scaler if varies else None

    def no_totals(self) -> dict[str, Ratio]:
        """The `totals` of no update at all."""
        names = (*self.objective.metrics, "gradient_norm")
        return {name: Ratio(tf.constant(0.0), tf.constant(0.0)) for name in names}

    def stop(self, is_stopped: bool = True) -> None:
        """Ends `train`, running in another thread, after the current update; False: undoes it."""
        self._is_stopped.assign(is_stopped)

    # AutoGraph is needed only for the Python loop in this method. In the functions that it calls,
    # AutoGraph would change nothing, but double the tracing time: hence `_not_converted`.
    @tf.function
    def train(
        self,
        iterator: Iterator[Batch],
        num_steps: tf.Tensor,
        totals: dict[str, Ratio] | None = None,
    ) -> Outcome:
        """Runs `num_steps` (int32 scalar) updates, in one call of TensorFlow; fewer when `stop` is
        called. totals: sums of earlier updates, which the figures include.
        """
        totals = self.no_totals() if totals is None else totals
        was_good = totals["gradient_norm"].denominator > 0
        num_bad = tf.constant(0)
        first_bad = last_good = tf.constant(0, tf.int64)
        for _ in tf.range(num_steps):
            parts = self.strategy.run(self._replica_train_step, args=(next(iterator),))
            sums = self._sum_over_replicas(parts)
            is_good = self._is_finite(sums)
            totals = _add_if(is_good, totals, sums)
            step = tf.cast(self.optimizer.iterations, tf.int64)
            num_bad += tf.cast(~is_good, tf.int32)
            if first_bad == 0 and not is_good:
                first_bad = step
            last_good = tf.where(is_good, step, last_good)
            if self._has_to_stop(step):
                break
        metrics = self._metrics(totals, was_good | (last_good > 0))
        return Outcome(metrics, num_bad, first_bad, last_good, totals)

    @_not_converted
    def _has_to_stop(self, step: tf.Tensor) -> tf.Tensor:
        """Whether `stop` was called, here or on another worker, before update `step` was made."""
        # Without the dependency TensorFlow may read the variable before the update has begun.
        with tf.control_dependencies([step]):
            is_stopped = self._is_stopped.read_value()
        if not isinstance(self.strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return is_stopped
        return sum_over_workers(self.strategy, tf.cast(is_stopped, tf.float32)) > 0

    @_not_converted
    def _metrics(self, totals: dict[str, Ratio], is_any_good: tf.Tensor) -> dict[str, tf.Tensor]:
        """The figures of an Outcome, from the sums over its steps."""
        metrics = _divide(totals)
        metrics["loss"] = tf.add_n([metrics[name] for name in self.objective.losses])
        metrics = {
            name: tf.where(is_any_good, value, float("nan")) for name, value in metrics.items()
        }
        metrics["learning_rate"] = self._last_learning_rate()
        return metrics

    @_not_converted
    def _is_finite(self, sums: dict[str, Ratio]) -> tf.Tensor:
        """Whether losses and gradient of a step are finite, bool scalar."""
        losses = [sums[name].numerator for name in self.objective.losses]
        is_finite = tf.reduce_all(tf.math.is_finite(losses))
        if self.loss_scaling is None:
            is_finite &= sums["gradient_norm"].denominator > 0
        return is_finite

    def _last_learning_rate(self) -> tf.Tensor:
        rate = self.optimizer.learning_rate
        if callable(rate):  # A schedule.
            rate = rate(self.optimizer.iterations - 1)
        return tf.cast(rate, tf.float32)

    @_not_converted
    def _replica_train_step(self, batch: Batch) -> dict[str, Ratio]:
        """One replica's part of an update; returns the sums over its part of the batch."""
        context = tf.distribute.get_replica_context()
        denominators = context.all_reduce(
            tf.distribute.ReduceOp.SUM, loss_denominators(self.objective, batch)
        )
        compute = self._gradients
        if self._jit_compile:  # A new function, since each replica has variables of its own.
            compute = tf.function(compute, jit_compile=True, autograph=False)
        if self.num_micro_batches > 1:
            compute = functools.partial(self._accumulated_gradients, compute)
        gradients, ratios = compute(batch, denominators, self._dropout_seed(context))
        # A variable without a gradient belongs to a head whose loss is left out.
        variables = self.objective.model.trainable_variables
        pairs = [pair for pair in zip(gradients, variables) if pair[0] is not None]
        gradients, variables = map(list, zip(*pairs))
        # Summed here, to get the norm of the sum; the optimizer does not sum them again.
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        if self._scaler:
            gradients = self._scaler.get_unscaled_gradients(gradients)
        optimizer = self._scaler or self.optimizer
        optimizer.apply_gradients(zip(gradients, variables), skip_gradients_aggregation=True)
        norm = tf.linalg.global_norm(gradients)
        # Weight 0 excludes a norm that is not finite.
        weight = tf.cast(tf.math.is_finite(norm), tf.float32)
        return {**ratios, "gradient_norm": Ratio(tf.math.multiply_no_nan(norm, weight), weight)}

    def _accumulated_gradients(
        self,
        compute: Callable[..., tuple[Gradients, dict[str, Ratio]]],
        batch: Batch,
        denominators: dict[str, tf.Tensor],
        seed: tf.Tensor,
    ) -> tuple[Gradients, dict[str, Ratio]]:
        """`compute`, which is `_gradients`, summed over the micro-batches of a replica's batch."""
        # The optimizer is called once, after the loop: inside a replica's loop `apply_gradients`
        # fails under a MirroredStrategy.
        parts = tf.nest.map_structure(self._split, batch)
        # tf.while_loop carries tensors only, so zeros replace gradients that are None; tracing the
        # body records here which ones are.
        has_gradient: list[bool] = []

        def add_part(index: tf.Tensor, totals: list[tf.Tensor], sums: dict[str, Ratio]):
            part = tf.nest.map_structure(lambda values: values[index], parts)
            part_seed = tf.random.experimental.stateless_fold_in(seed, index)
            gradients, ratios = compute(part, denominators, part_seed)
            has_gradient[:] = [gradient is not None for gradient in gradients]
            totals = [
                total if gradient is None else total + gradient
                for total, gradient in zip(totals, gradients)
            ]
            return index + 1, totals, tf.nest.map_structure(tf.add, sums, ratios)

        zero = Ratio(tf.constant(0.0), tf.constant(0.0))
        _, totals, sums = tf.while_loop(
            lambda index, *_: index < self.num_micro_batches,
            add_part,
            (
                tf.constant(0),
                [tf.zeros(v.shape, v.dtype) for v in self.objective.model.trainable_variables],
                dict.fromkeys(self.objective.metrics, zero),
            ),
            parallel_iterations=1,  # More would hold the activations of several parts at once.
        )
        return [total if has else None for total, has in zip(totals, has_gradient)], sums

    def _split(self, values: tf.Tensor) -> tf.Tensor:
        """[B, ...] -> [micro-batches, B / micro-batches, ...]: [a b c d] -> [[a b] [c d]]."""
        size, static = -1, values.shape[0]
        if static is not None:
            size = static // self.num_micro_batches
        shape = tf.concat([[self.num_micro_batches, size], tf.shape(values)[1:]], axis=0)
        static_shape = [self.num_micro_batches, size if size > 0 else None, *values.shape[1:]]
        return tf.ensure_shape(tf.reshape(values, shape), static_shape)

    def _gradients(
        self, batch: Batch, denominators: dict[str, tf.Tensor], seed: tf.Tensor
    ) -> tuple[Gradients, dict[str, Ratio]]:
        """Gradients of a part of the global batch, and its ratios."""
        variables = self.objective.model.trainable_variables
        with tf.GradientTape() as tape:
            ratios = self.objective.ratios(batch, training=True, seed=seed)
            loss = total_loss(self.objective, ratios, denominators)
            if self._scaler:
                loss = self._scaler.get_scaled_loss(loss)
        # Dense, because the norm of a sparse gradient counts repeated rows separately.
        gradients = [
            None if gradient is None else tf.convert_to_tensor(gradient)
            for gradient in tape.gradient(loss, variables)
        ]
        return gradients, ratios

    def _dropout_seed(self, context: tf.distribute.ReplicaContext) -> tf.Tensor:
        """A function of seed, step and replica, so that a resumed run draws the same masks."""
        step = tf.cast(self.optimizer.iterations, tf.int32)
        step_seed = tf.random.experimental.stateless_fold_in(self._seed, step)
        return tf.random.experimental.stateless_fold_in(step_seed, context.replica_id_in_sync_group)

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """A context in which the model's weights are replaced by their averages, if the optimizer
        keeps averages.
        """
        averages = getattr(self.optimizer, "averages", ())
        variables = self.objective.model.trainable_variables[: len(averages)]
        weights = [tf.identity(each) for each in variables]
        try:
            for variable, average in zip(variables, averages):
                variable.assign(tf.convert_to_tensor(average))
            yield
        finally:
            for variable, value in zip(variables, weights):
                variable.assign(value)

    @tf.function(autograph=False)
    def describe_updates(self) -> dict[str, dict[str, tf.Tensor]]:
        """AdamFamily.describe_updates of all variables, and the norm of the whole last update."""
        figures = self.optimizer.describe_updates(self.objective.model.trainable_variables)
        norms = list(figures["update_norm"].values())
        return {**figures, "update": {"norm": tf.linalg.global_norm(norms)}}

    @_not_converted
    def _sum_over_replicas(self, per_replica: dict[str, Ratio]) -> dict[str, Ratio]:
        return tf.nest.map_structure(
            lambda value: self.strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None),
            per_replica,
        )

    def evaluate(self, batches: Iterable[Batch]) -> dict[str, float]:
        """The objective's metrics and `loss` over all batches, which `distribute` has returned."""
        totals: dict[str, Ratio] = {}
        for batch in batches:
            sums = self._evaluation_step(batch)
            totals = tf.nest.map_structure(tf.add, totals, sums) if totals else sums
        metrics = {name: float(value) for name, value in _divide(totals).items()}
        return {"loss": sum(metrics[name] for name in self.objective.losses), **metrics}

    @tf.function(autograph=False)
    def _evaluation_step(self, batch: Batch) -> dict[str, Ratio]:
        def replica_step(replica_batch: Batch) -> dict[str, Ratio]:
            return self.objective.ratios(replica_batch, training=False)

        return self._sum_over_replicas(self.strategy.run(replica_step, args=(batch,)))

    def distribute(self, data: Data) -> Iterable[Batch]:
        """`distributed` over the strategy's replicas."""
        return distributed(self.strategy, data)


def distributed(strategy: tf.distribute.Strategy, data: Data) -> Iterable[Batch]:
    """Global batches, split over the replicas; each replica gets consecutive rows. If several hosts
    read and `data` is a function, each host calls it with `input_context=` for its own rows; if it
    is a dataset, each host reads all of it and uses its share.
    """
    if isinstance(data, tf.data.Dataset):
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.DATA
        )
        return strategy.experimental_distribute_dataset(data.with_options(options))

    def read(context: tf.distribute.InputContext) -> tf.data.Dataset:
        is_alone = context.num_input_pipelines == 1
        dataset = data() if is_alone else data(input_context=context)
        num_replicas = context.num_replicas_in_sync // context.num_input_pipelines
        return _split_batches(dataset, num_replicas)

    return strategy.distribute_datasets_from_function(read)


def _split_batches(dataset: tf.data.Dataset, num_parts: int) -> tf.data.Dataset:
    """Each batch as `num_parts` batches of equal size, one after the other; the last may be
    smaller: 10 rows in 4 parts -> 3, 3, 3, 1.
    """
    if num_parts == 1:
        return dataset
    size = tf.nest.flatten(dataset.element_spec)[0].shape[0]
    bounds = [min(size, part * -(-size // num_parts)) for part in range(num_parts + 1)]
    sizes = [end - first for first, end in itertools.pairwise(bounds)]
    return dataset.rebatch(sizes, drop_remainder=True).prefetch(num_parts)


def skip_bad_updates(
    optimizer: keras.optimizers.Optimizer,
) -> keras.mixed_precision.LossScaleOptimizer:
    """The optimizer, wrapped so that it skips updates whose gradient is not finite."""
    # Keras's LossScaleOptimizer skips them. It does nothing else: its scale stays at 1, since it
    # would grow only after 2^31 updates.
    return keras.mixed_precision.LossScaleOptimizer(
        optimizer, initial_scale=1, dynamic_growth_steps=(1 << 31) - 1
    )


@_not_converted
def _add_if(
    condition: tf.Tensor, totals: dict[str, Ratio], sums: dict[str, Ratio]
) -> dict[str, Ratio]:
    """totals + sums if the condition, a bool scalar, holds, else totals."""
    return tf.nest.map_structure(
        lambda total, part: tf.where(condition, total + part, total), totals, sums
    )


def _divide(totals: dict[str, Ratio]) -> dict[str, tf.Tensor]:
    """The means of ratios, float32 scalars."""
    return {name: ratio.numerator / (ratio.denominator + EPSILON) for name, ratio in totals.items()}
