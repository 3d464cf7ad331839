"""A whole fine-tuning with KerasHub's ALBERT and Keras' fit, from files to the dev score.

KerasHub has only classifiers for ALBERT. Its tokenizer and packer run in tf.data; the packer pads
to a fixed length, so each batch is trimmed to its longest sequence here.
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import tempfile

import finetuning_data
import keras
import keras_hub
import numpy as np
import tensorflow as tf


def make_model(case: dict) -> keras.Model:
    """The classifier with random weights."""
    config = case["config"]
    backbone = keras_hub.models.AlbertBackbone(
        vocabulary_size=config["vocab_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        hidden_dim=config["hidden_size"],
        intermediate_dim=config["intermediate_size"],
        embedding_dim=config["embedding_size"],
        dropout=0.0,
        max_sequence_length=config["max_position_embeddings"],
    )
    return keras_hub.models.AlbertTextClassifier(backbone, 2, dropout=case["dropout"])


def main() -> None:
    case = finetuning_data.request()
    pack = keras_hub.models.AlbertTextClassifierPreprocessor(
        keras_hub.models.AlbertTokenizer(case["vocab_file"]), sequence_length=case["max_seq_length"]
    )

    def batches(rows: list[dict], size: int, shuffle: bool) -> tf.data.Dataset:
        columns = ["text", "pair"] if case["task"] == "mrpc" else ["text"]
        texts = tuple([row[column] for row in rows] for column in columns)
        labels = np.array([row["label"] for row in rows], np.int32)
        data = tf.data.Dataset.from_tensor_slices((texts, labels))
        if shuffle:
            data = data.shuffle(len(rows), seed=0)

        def make(texts, labels):
            inputs, labels = pack(texts if len(texts) > 1 else texts[0], labels)
            longest = tf.reduce_max(tf.reduce_sum(tf.cast(inputs["padding_mask"], tf.int32), 1))
            return {name: values[:, :longest] for name, values in inputs.items()}, labels

        return data.batch(size).map(make, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    training = batches(finetuning_data.read_rows(case, "train"), case["batch_size"], True)
    steps = int(training.cardinality())
    rate = keras.optimizers.schedules.PolynomialDecay(case["learning_rate"], steps, 0.0)
    model = make_model(case)
    model.compile(
        optimizer=keras.optimizers.AdamW(rate, weight_decay=0.01),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    model.fit(training, epochs=1, verbose=2)
    with tempfile.TemporaryDirectory() as folder:
        model.save_weights(os.path.join(folder, "model.weights.h5"))
    dev = batches(finetuning_data.read_rows(case, "dev"), case["eval_batch_size"], False)
    finetuning_data.answer(case, model.evaluate(dev, verbose=2)[1])


if __name__ == "__main__":
    main()
