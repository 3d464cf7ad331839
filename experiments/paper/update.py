"""Times the two parts of a model's update separately: the arithmetic and the optimizer.

python -m experiments.paper.update --preset=albert-base-v2 --output=seconds.json
"""

from __future__ import annotations

import time
from collections.abc import Callable

import tensorflow as tf

from albert_tf import LAMB, AdamW, AlbertConfig, AlbertPretrainer, Muon, get_preset
from albert_tf.models.objectives import PretrainingObjective, total_loss
from albert_tf.training import DeviceSettings
from albert_tf.training.devices import prepare_devices
from albert_tf.training.settings import PRECISIONS
from data_pipeline.command_line import flags, run_binary
from data_pipeline.files import atomic_files

FLAGS = flags.FLAGS
OPTIMIZERS = {"lamb": LAMB, "adamw": AdamW, "muon": Muon}


def define_flags() -> None:
    """Flags of this program."""
    flags.group("What is timed")
    flags.DEFINE_string("preset", None, "Architecture by name, or its config.json.", required=True)
    flags.DEFINE_integer("num_layers", 0, "Number of layers; 0: the preset's.", 0)
    flags.DEFINE_integer("batch_size", 4, "Number of sequences.", lower_bound=1)
    flags.DEFINE_integer("length", 128, "Number of tokens in a sequence.", lower_bound=8)
    flags.DEFINE_enum("precision", "float32", PRECISIONS, "Precision of the arithmetic.")
    flags.DEFINE_enum("optimizer", "lamb", list(OPTIMIZERS), "Optimizer whose update is timed.")
    flags.DEFINE_float("seconds", 8, "Processor seconds for each part.")
    flags.DEFINE_string("output", None, "JSON file to write the seconds to.", required=True)


def main() -> None:
    """Writes {"arithmetic": seconds, "optimizer": seconds}."""
    devices = prepare_devices(DeviceSettings(precision=FLAGS.precision))
    is_file = FLAGS.preset.endswith(".json")
    config = (AlbertConfig.from_json_file if is_file else get_preset)(FLAGS.preset)
    config = config.replace(num_hidden_layers=FLAGS.num_layers or config.num_hidden_layers)
    model = AlbertPretrainer(config, packed=devices.packed)
    objective, batch = PretrainingObjective(model), random_batch(config.vocab_size)
    optimizer = OPTIMIZERS[FLAGS.optimizer](1e-4)
    optimizer.build(model.trainable_variables)
    pairs = [(tf.fill(each.shape, 1e-3), each) for each in model.trainable_variables]

    @tf.function
    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = total_loss(objective, objective.ratios(batch, training=True))
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]

    @tf.function
    def update() -> list[tf.Tensor]:
        optimizer.apply_gradients(pairs)
        return [tf.identity(optimizer.iterations)]

    parts = {"arithmetic": gradients, "optimizer": update}
    atomic_files.write_json(FLAGS.output, {name: seconds(run) for name, run in parts.items()})


def random_batch(vocab_size: int) -> dict[str, tf.Tensor]:
    """Random tokens without padding; every eighth token is masked."""
    shape = (FLAGS.batch_size, FLAGS.length)
    ids = tf.random.stateless_uniform(shape, [0, 0], 5, vocab_size, tf.int32)
    masked = tf.tile(tf.range(1, FLAGS.length, 8)[tf.newaxis], [FLAGS.batch_size, 1])
    return {
        "input_word_ids": ids,
        "input_mask": tf.ones_like(ids),
        "input_type_ids": tf.zeros_like(ids),
        "masked_lm_positions": masked,
        "masked_lm_ids": tf.gather(ids, masked, batch_dims=1),
        "masked_lm_weights": tf.ones(masked.shape),
        "sentence_order_labels": tf.zeros(shape[:1], tf.int32),
        "example_weights": tf.ones(shape[:1]),
    }


def seconds(run: Callable[[], list[tf.Tensor]]) -> float:
    """Processor seconds of the fastest of at least three calls, after one that compiles. Other load
    on the machine affects processor time less than wall time.
    """
    run()[0].numpy()
    times: list[float] = []
    while len(times) < 3 or sum(times) < FLAGS.seconds:
        began = time.process_time()
        run()[0].numpy()
        times.append(time.process_time() - began)
    return min(times)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
