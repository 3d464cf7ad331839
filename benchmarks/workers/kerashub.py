"""KerasHub on Keras 3 with TensorFlow."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import keras_hub
import protocol
import tensorflow as tf


def build(case):
    """A forward pass or a training step of KerasHub's backbone with the task's heads."""
    keras.utils.clear_session()
    dtype = "mixed_bfloat16" if case["precision"] == "bfloat16" else "float32"
    keras.config.set_dtype_policy(dtype)
    is_bert = case["model"] == "bert-base"
    kind = "Bert" if is_bert else "Albert"
    backbone = getattr(keras_hub.models, f"{kind}Backbone")(
        vocabulary_size=protocol.VOCAB_SIZE,
        num_layers=protocol.NUM_LAYERS,
        num_heads=protocol.NUM_HEADS,
        hidden_dim=protocol.HIDDEN_SIZE,
        intermediate_dim=protocol.INTERMEDIATE_SIZE,
        **({} if is_bert else {"embedding_dim": protocol.EMBEDDING_SIZE}),
        dropout=0.0,
        max_sequence_length=protocol.MAX_POSITIONS,
    )
    batch = {name: tf.constant(value) for name, value in protocol.make_batch(case).items()}
    inputs = {
        "token_ids": batch["word_ids"],
        "segment_ids": batch["type_ids"],
        "padding_mask": batch["mask"],
    }
    if case["task"] == "classification":
        classifier = getattr(keras_hub.models, f"{kind}TextClassifier")
        model = classifier(backbone, protocol.NUM_CLASSES, dropout=0.0)
    elif case["pass"] == "training":
        head = keras_hub.layers.MaskedLMHead(
            token_embedding=backbone.token_embedding, intermediate_activation="gelu"
        )
        positions = keras.Input([None], dtype="int32", name="positions")
        outputs = backbone(backbone.input)
        model = keras.Model(
            {**backbone.input, "positions": positions},
            {
                "masked_lm": head(outputs["sequence_output"], mask_positions=positions),
                "order": keras.layers.Dense(2)(outputs["pooled_output"]),
            },
        )
        inputs["positions"] = batch["positions"]
    else:
        model = backbone
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
                loss += mean_loss(batch["order"], outputs["order"])
        variables = [variable.value for variable in model.trainable_variables]
        gradients = tape.gradient(loss, variables)
        return loss, [tf.convert_to_tensor(g) for g in gradients if g is not None]

    return lambda: step(inputs)[0].numpy()


def _first(outputs):
    return outputs["sequence_output"] if isinstance(outputs, dict) else outputs


protocol.serve(build)
