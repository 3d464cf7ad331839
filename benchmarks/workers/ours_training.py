"""This project's training, from the bare gradient to the whole loop.

Argument: gradient, recompute (gradient with recomputed activations), lamb (only LAMB with clipping,
repeated for the same gradient), update (gradient and LAMB) or loop (input pipeline, updates,
reports). A turn is several steps. All kinds use the same batches, because packed batches differ in
work; all except the loop read them from a file made by training.py, to save the memory of an input
pipeline. XLA compiles for each new number of tokens: warm-up turns before the first measured one
cover most of them.
"""

import os
import sys
import tempfile
import threading
import traceback

import numpy as np
import protocol
import tensorflow as tf

from albert_tf import AlbertPretrainer, get_preset
from albert_tf.analysis.costs import pretraining_flops_per_token
from albert_tf.keras_compat import keras
from albert_tf.models.objectives import PretrainingObjective, total_loss
from albert_tf.optimization import LAMB, WarmupPolynomialDecay
from albert_tf.training import LoopSettings, Stepper, train
from albert_tf.training.report.machine import step_cost
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.records.record_folder import read_manifest

KIND = sys.argv[1]
STEPS = 3  # Steps in a turn.
WARM_UP = 4  # Turns before measuring.


def build(case):
    """A function that runs STEPS steps of this program's kind, after WARM_UP turns."""
    run = _make_run(case)
    run.steps = STEPS
    for _ in range(WARM_UP):
        run()
    return run


def _make_run(case):
    keras.backend.clear_session()
    mixed = case["precision"] == "bfloat16"
    keras.mixed_precision.set_global_policy("mixed_bfloat16" if mixed else "float32")
    config = get_preset(case["preset"]).replace(recompute=KIND == "recompute")
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope():
        task = PretrainingObjective(AlbertPretrainer(config))
    if KIND in ("gradient", "recompute"):
        return _gradient(task, _batches(case))
    with strategy.scope():
        optimizer = LAMB(WarmupPolynomialDecay(1e-4, 1 << 20, 1 << 10))
        optimizer.build(task.model.trainable_variables)
    if KIND == "lamb":
        return _lamb(task.model.trainable_variables, optimizer, strategy)
    stepper = Stepper(task, optimizer, strategy)
    if KIND == "update":
        return _updates(stepper, _batches(case))
    return _loop(stepper, case)


def _batches(case):
    with np.load(case["batches"]) as together:
        return tf.data.Dataset.from_tensor_slices(dict(together)).repeat()


def _gradient(task, batches):
    @tf.function
    def gradients(batch):
        with tf.GradientTape() as tape:
            loss = total_loss(task, task.ratios(batch, training=True))
        found = tape.gradient(loss, task.model.trainable_variables)
        return loss, [tf.convert_to_tensor(gradient) for gradient in found]

    iterator = iter(batches)

    def run():
        for _ in range(STEPS):
            gradients(next(iterator))[0].numpy()

    return run


def _lamb(variables, optimizer, strategy):
    pairs = [(tf.random.normal(variable.shape), variable) for variable in variables]

    @tf.function
    def apply():
        strategy.run(lambda: optimizer.apply_gradients(pairs, skip_gradients_aggregation=True))

    def run():
        for _ in range(STEPS):
            apply()

    return run


def _updates(stepper, batches):
    iterator = iter(stepper.distribute(batches))

    def run():
        float(stepper.train(iterator, tf.constant(STEPS)).metrics["loss"])

    return run


class _Gated:
    """A stepper whose training blocks at each stop of the loop until a turn starts."""

    def __init__(self, stepper):
        self._stepper = stepper
        self.go, self.stopped = threading.Semaphore(0), threading.Semaphore(0)

    def __getattr__(self, name):
        return getattr(self._stepper, name)

    def train(self, *arguments):
        self.stopped.release()
        self.go.acquire()
        return self._stepper.train(*arguments)


def _loop(stepper, case):
    """The training loop of run_pretraining, in a separate thread, with STEPS steps per turn."""
    manifest = read_manifest(case["data"])
    length = manifest["max_seq_length"]
    flops = pretraining_flops_per_token(
        stepper.objective.model.config, length, manifest["max_predictions"]
    )
    dtype = stepper.objective.model.compute_dtype
    cost = step_cost(case["batch_size"] * length, flops, dtype, stepper.strategy)
    gated = _Gated(stepper)

    def data(start_step):
        return pretraining_dataset(case["data"], case["batch_size"], start_step=start_step)

    settings = LoopSettings(1 << 20, steps_per_loop=STEPS, checkpoint_steps=1 << 19)

    def train_or_end():
        try:
            train(gated, data, None, settings, tempfile.mkdtemp(), cost)
        except BaseException:
            traceback.print_exc()
        os._exit(1)  # Only an error ends the loop; without this, a turn would wait forever.

    threading.Thread(target=train_or_end, daemon=True).start()
    gated.stopped.acquire()

    def run():
        gated.go.release()
        gated.stopped.acquire()

    return run


protocol.serve(build)
