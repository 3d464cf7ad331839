"""This project's models. Argument: packed or padded."""

import sys

import protocol
import tensorflow as tf

from albert_tf import AlbertClassifier, AlbertEncoder, AlbertPretrainer, get_preset
from albert_tf.keras_compat import keras
from albert_tf.models.objectives import ClassificationObjective, PretrainingObjective, total_loss

PACKED = sys.argv[1] == "packed"


def build(case):
    """A forward pass or a training step of this project's model of the case's task."""
    keras.backend.clear_session()
    mixed = case["precision"] == "bfloat16"
    keras.mixed_precision.set_global_policy("mixed_bfloat16" if mixed else "float32")
    config = get_preset(case["model"]).replace(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    batch = {name: tf.constant(value) for name, value in protocol.make_batch(case).items()}
    inputs = {
        "input_word_ids": batch["word_ids"],
        "input_mask": batch["mask"],
        "input_type_ids": batch["type_ids"],
        "masked_lm_positions": batch["positions"],
        "masked_lm_ids": batch["masked_ids"],
        "masked_lm_weights": tf.ones(batch["masked_ids"].shape),
        "sentence_order_labels": batch["order"],
        "label_ids": batch["label"],
        "example_weights": tf.ones(batch["label"].shape),
    }
    if case["pass"] == "forward":
        return _forward(case, config, inputs)
    if case["task"] == "classification":
        model = AlbertClassifier(config, protocol.NUM_CLASSES, 0.0, packed=PACKED)
        task = ClassificationObjective(model)
    else:
        model = AlbertPretrainer(config, packed=PACKED)
        task = PretrainingObjective(model)

    @tf.function(reduce_retracing=True)
    def step(inputs):
        with tf.GradientTape() as tape:
            loss = total_loss(task, task.ratios(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    return lambda: step(inputs)[0].numpy()


def _forward(case, config, inputs):
    if case["task"] == "classification":
        model = AlbertClassifier(config, protocol.NUM_CLASSES, packed=PACKED)
        forward = tf.function(lambda inputs: model(inputs))
    else:
        model = AlbertEncoder(config, packed=PACKED)
        forward = tf.function(lambda inputs: model(inputs)["sequence_output"])
    return lambda: forward(inputs).numpy()


protocol.serve(build)
