"""Compiled training and evaluation steps under any strategy."""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.losses import EPSILON, Ratio
from albert_tf.tasks import Batch, Task, total_loss


class Stepper:
    """Runs a task's training and evaluation steps; each kind is traced once.

    The gradient is that of the loss over the global batch: denominators are summed over replicas
    before the division, gradients after it. The result does not depend on the number of replicas
    but for rounding.
    """

    def __init__(
        self,
        task: Task,
        optimizer: keras.optimizers.Optimizer | None,
        strategy: tf.distribute.Strategy,
        seed: int = 0,
    ) -> None:
        self.task = task
        self.optimizer = optimizer
        self.strategy = strategy
        self._seed = tf.constant([seed, 0], tf.int32)

    @tf.function
    def train(self, iterator: Iterator[Batch], num_steps: tf.Tensor) -> dict[str, tf.Tensor]:
        """Runs `num_steps` (int32 scalar) updates.

        Returns:
          By name, float32 scalars: the task's metrics over all these steps, and of the last step
          the `learning_rate` and the global `gradient_norm` before clipping.
        """
        names = (*self.task.metrics, "gradient_norm")
        totals = {name: Ratio(tf.constant(0.0), tf.constant(0.0)) for name in names}
        for _ in tf.range(num_steps):
            sums = self._sum_over_replicas(
                self.strategy.run(self._replica_train_step, args=(next(iterator),))
            )
            totals = tf.nest.map_structure(tf.add, totals, sums)
        metrics = _divide(totals)
        metrics["loss"] = tf.add_n([metrics[name] for name in self.task.losses])
        metrics["learning_rate"] = tf.cast(self.optimizer.learning_rate, tf.float32)
        return metrics

    def _replica_train_step(self, batch: Batch) -> dict[str, Ratio]:
        context = tf.distribute.get_replica_context()
        variables = self.task.model.trainable_variables
        with tf.GradientTape() as tape:
            ratios = self.task.ratios(batch, training=True, seed=self._dropout_seed(context))
            denominators = {name: ratios[name].denominator for name in self.task.losses}
            loss = total_loss(
                self.task, ratios, context.all_reduce(tf.distribute.ReduceOp.SUM, denominators)
            )
        # A variable without a gradient belongs to a head whose loss is left out. Dense, because
        # the norm of a sparse gradient counts repeated rows apart.
        gradients, variables = zip(
            *(
                (tf.convert_to_tensor(gradient), variable)
                for gradient, variable in zip(tape.gradient(loss, variables), variables)
                if gradient is not None
            )
        )
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, list(gradients))
        self.optimizer.apply_gradients(zip(gradients, variables), skip_gradients_aggregation=True)
        return {
            **ratios,
            "gradient_norm": Ratio(tf.linalg.global_norm(gradients), tf.constant(1.0)),
        }

    def _dropout_seed(self, context: tf.distribute.ReplicaContext) -> tf.Tensor:
        """A function of run, step and replica, so that a resumed run draws the same masks."""
        step = tf.cast(self.optimizer.iterations, tf.int32)
        step_seed = tf.random.experimental.stateless_fold_in(self._seed, step)
        return tf.random.experimental.stateless_fold_in(step_seed, context.replica_id_in_sync_group)

    def _sum_over_replicas(self, per_replica: dict[str, Ratio]) -> dict[str, Ratio]:
        return tf.nest.map_structure(
            lambda value: self.strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None),
            per_replica,
        )

    def evaluate(self, dataset: tf.data.Dataset) -> dict[str, float]:
        """The task's metrics over a whole dataset of batches, and `loss`."""
        totals = None
        for batch in self.distribute(dataset):
            sums = self._evaluation_step(batch)
            totals = sums if totals is None else tf.nest.map_structure(tf.add, totals, sums)
        metrics = {name: float(value) for name, value in _divide(totals).items()}
        return {"loss": sum(metrics[name] for name in self.task.losses), **metrics}

    @tf.function
    def _evaluation_step(self, batch: Batch) -> dict[str, Ratio]:
        def replica_step(replica_batch: Batch) -> dict[str, Ratio]:
            return self.task.ratios(replica_batch, training=False)

        return self._sum_over_replicas(self.strategy.run(replica_step, args=(batch,)))

    def distribute(self, dataset: tf.data.Dataset) -> tf.distribute.DistributedDataset:
        """Splits each global batch over the replicas."""
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.DATA
        )
        return self.strategy.experimental_distribute_dataset(dataset.with_options(options))


def _divide(totals: dict[str, Ratio]) -> dict[str, tf.Tensor]:
    return {name: ratio.numerator / (ratio.denominator + EPSILON) for name, ratio in totals.items()}
