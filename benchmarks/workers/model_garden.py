"""TensorFlow Model Garden."""

import protocol
import tensorflow as tf
from official.nlp.modeling import models, networks


def gelu(x):
    """ALBERT's activation; the Model Garden's default is the exact GELU."""
    return tf.nn.gelu(x, approximate=True)


def build(case):
    """A forward pass or a training step of the Model Garden's encoder, with its task's heads."""
    if case["model"] != "albert-base-v2":
        raise NotImplementedError("Model Garden: ALBERT only")
    tf.keras.backend.clear_session()
    mixed = case["precision"] == "bfloat16"
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16" if mixed else "float32")
    encoder = networks.AlbertEncoder(
        vocab_size=protocol.VOCAB_SIZE,
        embedding_width=protocol.EMBEDDING_SIZE,
        hidden_size=protocol.HIDDEN_SIZE,
        num_layers=protocol.NUM_LAYERS,
        num_attention_heads=protocol.NUM_HEADS,
        max_sequence_length=protocol.MAX_POSITIONS,
        intermediate_size=protocol.INTERMEDIATE_SIZE,
        activation=gelu,
        dropout_rate=0.0,
        attention_dropout_rate=0.0,
    )
    batch = {name: tf.constant(value) for name, value in protocol.make_batch(case).items()}
    inputs = [batch["word_ids"], batch["mask"], batch["type_ids"]]
    if case["task"] == "classification":
        model = models.BertClassifier(encoder, protocol.NUM_CLASSES, dropout_rate=0.0)
    elif case["pass"] == "training":
        predictions = batch["positions"].shape[1]
        model = models.BertPretrainer(encoder, 2, predictions, activation=gelu, output="logits")
        inputs.append(batch["positions"])
    else:
        model = encoder
    if case["pass"] == "forward":
        forward = tf.function(lambda inputs: _first(model(inputs, training=False)))
        return lambda: forward(inputs).numpy()

    def mean_loss(labels, logits):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))
        return tf.reduce_mean(losses)

    @tf.function
    def step(inputs):
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            if case["task"] == "classification":
                loss = mean_loss(batch["label"], outputs)
            else:
                loss = mean_loss(batch["masked_ids"], outputs["masked_lm"])
                loss += mean_loss(batch["order"], outputs["classification"])
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, [tf.convert_to_tensor(g) for g in gradients if g is not None]

    return lambda: step(inputs)[0].numpy()


def _first(outputs):
    return outputs[0] if isinstance(outputs, (list, tuple)) else outputs


protocol.serve(build)
