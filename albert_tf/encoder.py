"""AlbertEncoder: embed -> project -> shared groups -> pool."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers import AlbertEmbedding, SharedTransformer
from albert_tf.layers.basic import build_children, dense, fold_in


class AlbertEncoder(keras.Model):
    """The ALBERT encoder (Lan et al., ICLR 2020; google-research/albert, modeling.py).

    Inputs, a dict: `input_word_ids`, `input_mask` (1 for real tokens) and `input_type_ids`
    (segment), int32 [B, S].
    Outputs, a dict: `sequence_output` float [B, S, H]; `pooled_output` float [B, H], tanh of a
    dense layer on the first position; `encoder_outputs`, a list of L * inner_group_num tensors
    float [B, S, H].
    Variables exist as soon as the object does.
    """

    def __init__(self, config: AlbertConfig, name: str = "encoder", **kwargs) -> None:
        super().__init__(name=name, **kwargs)
        self.config = config
        self.embeddings = AlbertEmbedding(config, name="embeddings")
        self.transformer = SharedTransformer(config, name="transformer")
        self.pooler = dense(config.hidden_size, config, name="pooler")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        if self.built:
            return
        with tf.name_scope(self.name):
            for part in (self.embeddings, self.transformer):
                with tf.name_scope(part.name):
                    part.build()
            build_children((self.pooler, self.config.hidden_size))
        self.built = True

    def call(
        self,
        inputs: dict[str, tf.Tensor],
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> dict[str, Any]:
        """Args: seed: int32 [2], from which all dropout masks follow; None draws fresh ones."""
        hidden = self.embeddings(
            inputs["input_word_ids"],
            inputs["input_type_ids"],
            training=training,
            seed=fold_in(seed, 0),
        )
        outputs = self.transformer(
            hidden, inputs["input_mask"], training=training, seed=fold_in(seed, 1)
        )
        pooled = tf.tanh(self.pooler(outputs[-1][:, 0]))
        return {"sequence_output": outputs[-1], "pooled_output": pooled, "encoder_outputs": outputs}

    def get_config(self) -> dict[str, Any]:
        return {"config": self.config.to_dict(), "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> AlbertEncoder:
        return cls(AlbertConfig.from_dict(config["config"]), name=config["name"])
