"""Writes the update of `run_pretraining` as StableHLO, for machines without TensorFlow.

    python -m experiments.weights.compile_update --init_checkpoint=albert-small-en \
        --max_seq_length=128 --train_batch_size=256 --num_train_steps=40000 --output_dir=compiled

It also accepts a stage's flag file (stages/*.flags).

update.stablehlo    batch and state -> figures and new state; accelerator.py runs it
state.npz           the state before the first update: weights, moments, update counter
update.json         batch size, updates, settings of the examples, layout of the state
spiece.model        the vocabulary, or vocab.txt
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models.objectives import Batch
from albert_tf.pretraining import flags as pretraining_flags
from albert_tf.pretraining.objectives import objective_of
from albert_tf.training import InitialModel
from albert_tf.training import flags as shared_flags
from albert_tf.training.optimizers import make_optimizer
from albert_tf.training.steps import Stepper
from data_pipeline.command_line import flags, run_binary
from data_pipeline.command_line.settings import define, read
from data_pipeline.files import atomic_files, atomic_folders
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers import tokenizer_flags
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program: those of run_pretraining, so that both accept a stage's file. The
    accelerator has its own --max_minutes."""
    shared_flags.define_run_flags(modes=("train",))
    define(InitialModel, "Model")
    pretraining_flags.define_data_flags()
    pretraining_flags.define_objective_flags()
    pretraining_flags.define_recipe_flags()
    shared_flags.define_training_flags(
        train_batch_size=256, optimizer="adamw", learning_rate=0.0008, num_train_steps=1000
    )


def main() -> None:
    if FLAGS.objective != "mlm":
        raise UserError(f"--objective={FLAGS.objective} draws noise: only mlm is compiled.")
    if FLAGS.gradient_accumulation_steps != 1:
        raise UserError(
            f"--gradient_accumulation_steps={FLAGS.gradient_accumulation_steps}: an update is "
            "compiled as a whole. Leave it out, and give the accelerator a smaller batch."
        )
    if FLAGS.precision == "mixed_float16" or FLAGS.max_bad_steps:
        raise UserError(
            "--precision=mixed_float16 and --max_bad_steps are not compiled: an update that is not "
            "finite ends the run. Use mixed_bfloat16."
        )
    if FLAGS.pack_documents:
        raise UserError(
            "--pack_documents: token files are read a document at a time. Leave it out."
        )
    FLAGS.fast, FLAGS.packed = "off", "false"  # Both are for CPUs.
    shared_flags.prepare_flagged_devices()
    examples = read(PretrainingSettings, masking="dynamic", dupe_factor=1)
    examples.check_no_run_is_needed()
    tokenizer = load_tokenizer(shared_flags.chosen_vocabulary(), **tokenizer_flags.by_hand())
    start, recipe = read(InitialModel), pretraining_flags.recipe()
    config = start.config(tokenizer.vocab_size, examples.max_seq_length, "the examples")
    keras.utils.set_random_seed(FLAGS.seed)
    model = pretraining_flags.model(config, packed=False)
    start.load_start(model)
    settings = shared_flags.optimizer_settings(recipe)
    optimizer = make_optimizer(settings, config, recipe.num_train_steps)
    objective = objective_of(model).losses(examples.sentence_objective)
    stepper = Stepper(objective, optimizer, tf.distribute.get_strategy(), FLAGS.seed)
    batch = empty_batch(FLAGS.train_batch_size, examples)
    about, state, module = compiled(stepper, batch)
    about |= {
        "batch_size": FLAGS.train_batch_size,
        "num_train_steps": recipe.num_train_steps,
        "seed": FLAGS.seed,
        "examples": dataclasses.asdict(examples),
        "vocab_file": tokenizer.STORED_NAME,
        "vocab_fingerprint": tokenizer.fingerprint,
    }
    with atomic_folders.replacing(FLAGS.output_dir) as folder:
        Path(folder, "update.stablehlo").write_bytes(module)
        np.savez_compressed(os.path.join(folder, "state.npz"), *state)
        atomic_files.write_json(os.path.join(folder, "update.json"), about)
        config.to_json_file(os.path.join(folder, "config.json"))
        atomic_files.copy(tokenizer.vocab_file, os.path.join(folder, tokenizer.STORED_NAME))
        settings_json = os.path.join(folder, "tokenizer_settings.json")
        atomic_files.write_bytes(settings_json, tokenizer.settings_json())
    print(
        f"{FLAGS.output_dir}: {len(module):,} bytes of StableHLO, {len(state)} parts of the state"
    )


def empty_batch(batch_size: int, examples: PretrainingSettings) -> Batch:
    """A batch of zeros with the right shapes and dtypes."""
    tokens = tf.zeros([batch_size, examples.max_seq_length], tf.int32)
    predictions = tf.zeros([batch_size, examples.max_predictions_per_seq], tf.int32)
    return {
        "input_word_ids": tokens,
        "input_mask": tokens,
        "input_type_ids": tokens,
        "masked_lm_positions": predictions,
        "masked_lm_ids": predictions,
        "masked_lm_weights": tf.cast(predictions, tf.float32),
        "sentence_order_labels": tf.zeros([batch_size], tf.int32),
        "example_weights": tf.zeros([batch_size]),
    }


def compiled(stepper: Stepper, batch: Batch) -> tuple[dict[str, Any], list[np.ndarray], bytes]:
    """The layout of the state, its values, and the update as StableHLO, whose arguments are the
    batch (by sorted names) and the state. In the layout, `weights` are the names of what is saved,
    and `starts` of what other weights replace. UserError if TensorFlow cannot write StableHLO.
    """
    model = stepper.objective.model
    stepper.optimizer.build(model.trainable_variables)
    names = stepper.objective.metrics

    @tf.function(jit_compile=True, autograph=False)
    def update(batch: Batch) -> tf.Tensor:
        ratios = stepper._replica_train_step(batch)
        return tf.stack([ratios[name].numerator / ratios[name].denominator for name in names])

    # XLA's parameters are the batch, followed by the captured tensors.
    concrete = update.get_concrete_function(batch)
    variables = {id(each.handle): each for each in concrete.graph.variables}
    captured = concrete.captured_inputs
    state = [variables.get(id(each), each) for each in captured]
    ir = update.experimental_get_compiler_ir(batch)
    try:
        module = ir(stage="stablehlo_serialized")
    except ValueError:
        raise UserError(
            f"TensorFlow {tf.__version__} does not write StableHLO; 2.21 of Python 3.12 does."
        ) from None
    # All results but the first are parts of the state: {3}: (11, ...) means that result 3 is the
    # new value of parameter 11.
    aliases = re.findall(r"\{(\d+)\}: \((\d+),", ir(stage="hlo").split("\n", 1)[0])
    replaced = [int(parameter) - len(batch) for result, parameter in aliases if result != "0"]
    # If there are averages of the weights, they are saved instead of the weights.
    trained = model.trainable_variables
    averages = list(getattr(stepper.optimizer, "averages", ()))
    kept = [*averages, *trained[len(averages) :]]
    weights = {id(each.handle): named.name for each, named in zip(kept, trained)}
    starts = {id(each.handle): each.name for each in trained} | weights
    about = {
        "inputs": {
            name: [value.shape.as_list(), value.dtype.name] for name, value in batch.items()
        },
        "figures": names,
        "replaced": replaced,
        "weights": [weights.get(id(each)) for each in captured],
        "starts": [starts.get(id(each)) for each in captured],
    }
    return about, [each.numpy() for each in state], module


if __name__ == "__main__":
    define_flags()
    run_binary(main)
