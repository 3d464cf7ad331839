"""What stands on an encoder: masked language model, sentence pair, classification."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.basic import Dropout, LayerNorm, activation, build_children, dense


class MaskedLMHead(keras.layers.Layer):
    """Predicts the word pieces at masked positions with the encoder's own word embedding table."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs)
        self._config = config
        self._activation = activation(config.hidden_act)
        self.transform = dense(config.embedding_size, config, name="transform")
        self.layer_norm = LayerNorm(config, name="layer_norm")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        config = self._config
        build_children(
            (self.transform, config.hidden_size), (self.layer_norm, config.embedding_size)
        )
        # Added to float32 logits, so never cast to the compute precision.
        self.output_bias = self.add_weight(
            "output_bias", [config.vocab_size], initializer="zeros", experimental_autocast=False
        )
        super().build(input_shape)

    def call(
        self, sequence_output: tf.Tensor, positions: tf.Tensor, word_embeddings: tf.Tensor
    ) -> tf.Tensor:
        """Logits at some positions.

        Args:
          sequence_output: float [B, S, H].
          positions: int32 [B, P].
          word_embeddings: float [V, E].

        Returns:
          float32 [B, P, V].
        """
        gathered = tf.gather(sequence_output, positions, batch_dims=1)  # [B, P, H]
        shape = tf.shape(positions)
        rows = tf.reshape(gathered, [-1, self._config.hidden_size])  # [B * P, H]
        rows = self.layer_norm(self._activation(self.transform(rows)))  # [B * P, E]
        logits = tf.matmul(
            rows, tf.cast(word_embeddings, rows.dtype), transpose_b=True
        )  # [B * P, V]
        logits = tf.cast(logits, tf.float32) + self.output_bias
        return tf.reshape(logits, [shape[0], shape[1], self._config.vocab_size])


class SentencePairHead(keras.layers.Layer):
    """Two logits from the pooled output: 0 the segments are in order, 1 they are swapped (SOP) or
    random (NSP).
    """

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs)
        self._config = config
        self.logits = dense(2, config, name="logits")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        build_children((self.logits, self._config.hidden_size))
        super().build(input_shape)

    def call(self, pooled_output: tf.Tensor) -> tf.Tensor:
        """float [B, H] -> float32 [B, 2]."""
        return tf.cast(self.logits(pooled_output), tf.float32)


class ClassificationHead(keras.layers.Layer):
    """Dropout and a dense layer on the pooled output."""

    def __init__(
        self, config: AlbertConfig, num_classes: int, dropout_rate: float, **kwargs
    ) -> None:
        super().__init__(**kwargs)
        self._config = config
        self.dropout = Dropout(dropout_rate, name="dropout")
        self.logits = dense(num_classes, config, name="logits")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        build_children((self.logits, self._config.hidden_size))
        super().build(input_shape)

    def call(
        self, pooled_output: tf.Tensor, training: bool = False, seed: tf.Tensor | None = None
    ) -> tf.Tensor:
        """float [B, H] -> float32 [B, C]."""
        dropped = self.dropout(pooled_output, training=training, seed=seed)
        return tf.cast(self.logits(dropped), tf.float32)
