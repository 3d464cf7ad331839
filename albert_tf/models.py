"""Encoder and heads put together, one Keras model for each task."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.encoder import AlbertEncoder
from albert_tf.heads import ClassificationHead, MaskedLMHead, SentencePairHead
from albert_tf.keras_compat import keras
from albert_tf.layers.basic import fold_in


class _TaskModel(keras.Model):
    """An encoder with heads; variables exist as soon as the object does."""

    def __init__(self, config: AlbertConfig, name: str) -> None:
        super().__init__(name=name)
        self.config = config
        self.encoder = AlbertEncoder(config)

    def build_heads(self, *heads: keras.layers.Layer) -> None:
        for head in heads:
            with tf.name_scope(head.name):
                head.build(None)
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Nothing is left to do: the constructor has made every variable."""

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> _TaskModel:
        arguments = dict(config)
        return cls(AlbertConfig.from_dict(arguments.pop("config")), **arguments)


class AlbertPretrainer(_TaskModel):
    """Masked language model and sentence order, for pre-training.

    Inputs: those of AlbertEncoder and `masked_lm_positions` int32 [B, P].
    Outputs, a dict: `masked_lm_logits` float32 [B, P, V]; `sentence_order_logits` float32 [B, 2];
      and the
    encoder's outputs.
    """

    def __init__(self, config: AlbertConfig, name: str = "pretrainer") -> None:
        super().__init__(config, name)
        self.masked_lm = MaskedLMHead(config, name="masked_lm")
        self.sentence_order = SentencePairHead(config, name="sentence_order")
        self.build_heads(self.masked_lm, self.sentence_order)

    def call(
        self, inputs: dict[str, tf.Tensor], training: bool = False, seed: tf.Tensor | None = None
    ) -> dict[str, Any]:
        outputs = self.encoder(inputs, training=training, seed=seed)
        logits = self.masked_lm(
            outputs["sequence_output"],
            inputs["masked_lm_positions"],
            self.encoder.embeddings.word_embeddings,
        )
        order = self.sentence_order(outputs["pooled_output"])
        return {**outputs, "masked_lm_logits": logits, "sentence_order_logits": order}

    def get_config(self) -> dict[str, Any]:
        return {"config": self.config.to_dict(), "name": self.name}


class AlbertClassifier(_TaskModel):
    """Sentence or sentence-pair classification: logits float32 [B, C] from the pooled output.

    Inputs: those of AlbertEncoder. `dropout_rate` is the reference's 0.1 before the output layer,
    in training.
    """

    def __init__(
        self,
        config: AlbertConfig,
        num_classes: int,
        dropout_rate: float = 0.1,
        name: str = "classifier",
    ) -> None:
        super().__init__(config, name)
        self.num_classes = num_classes
        self.dropout_rate = dropout_rate
        self.classification = ClassificationHead(
            config, num_classes, dropout_rate, name="classification"
        )
        self.build_heads(self.classification)

    def call(
        self, inputs: dict[str, tf.Tensor], training: bool = False, seed: tf.Tensor | None = None
    ) -> tf.Tensor:
        pooled = self.encoder(inputs, training=training, seed=fold_in(seed, 0))["pooled_output"]
        return self.classification(pooled, training=training, seed=fold_in(seed, 1))

    def get_config(self) -> dict[str, Any]:
        return {
            "config": self.config.to_dict(),
            "num_classes": self.num_classes,
            "dropout_rate": self.dropout_rate,
            "name": self.name,
        }
