"""Hugging Face transformers, TensorFlow classes."""

import protocol
import tensorflow as tf
import transformers

_IGNORED = -100


def build(case):
    """A forward pass or a training step of the TensorFlow class of the case's task."""
    tf.keras.backend.clear_session()
    kind = protocol.huggingface_kind(case)
    mixed = case["precision"] == "bfloat16"
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16" if mixed else "float32")
    config = getattr(transformers, f"{kind}Config")(**protocol.huggingface_settings(kind))
    batch = protocol.make_batch(case)
    inputs = {
        "input_ids": tf.constant(batch["word_ids"]),
        "attention_mask": tf.constant(batch["mask"]),
        "token_type_ids": tf.constant(batch["type_ids"]),
    }
    if case["task"] == "classification":
        model = getattr(transformers, f"TF{kind}ForSequenceClassification")(config)
        labels = {"labels": tf.constant(batch["label"])}
    elif case["pass"] == "forward":
        model, labels = getattr(transformers, f"TF{kind}Model")(config), {}
    else:
        model = getattr(transformers, f"TF{kind}ForPreTraining")(config)
        shape = batch["word_ids"].shape
        everywhere = tf.fill(shape, _IGNORED)
        rows = tf.repeat(tf.range(shape[0]), batch["positions"].shape[1])
        places = tf.stack([rows, tf.reshape(batch["positions"], [-1])], axis=1)
        masked = tf.tensor_scatter_nd_update(
            everywhere, places, tf.reshape(batch["masked_ids"], [-1])
        )
        labels = {"labels": masked, protocol.ORDER_LABELS[kind]: tf.constant(batch["order"])}
    if case["pass"] == "forward":
        forward = tf.function(lambda inputs: model(inputs, training=False)[0])
        return lambda: forward(inputs).numpy()

    @tf.function
    def step(inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(inputs, training=True).loss)
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, [tf.convert_to_tensor(g) for g in gradients if g is not None]

    return lambda: step({**inputs, **labels})[0].numpy()


protocol.serve(build)
