"""AlbertEncoder: embed -> project -> shared groups -> pool."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.base_model import AlbertModel
from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras, policy_scope
from albert_tf.layers import AlbertEmbedding, SharedTransformer
from albert_tf.layers.basic import build_children, dense, fold_in
from albert_tf.layers.packing import make_layout
from albert_tf.layers.streams import Stream, stream_sizes


@keras.utils.register_keras_serializable("albert_tf")
class AlbertEncoder(AlbertModel):
    """The ALBERT encoder (Lan et al., ICLR 2020; google-research/albert, modeling.py).

    Inputs, a dict: `input_word_ids`, `input_mask` (1 for real tokens) and `input_type_ids`
    (segment), int32 [B, S].
    Outputs, a dict: `sequence_output` float [B, S, H]; `pooled_output` float [B, H], tanh of a
    dense layer on the first position; `encoder_outputs`, a list of L * inner_group_num tensors
    float [B, S, H].
    Sequence and encoder outputs are unspecified at padding.
    """

    def __init__(
        self, config: AlbertConfig, packed: bool | None = None, name: str = "encoder", **kwargs: Any
    ) -> None:
        """Args: see AlbertModel."""
        super().__init__(config, packed, name, **kwargs)
        with policy_scope(self.dtype_policy):
            self.embeddings = AlbertEmbedding(config, name="embeddings")
            self.transformer = SharedTransformer(config, name="transformer")
            self.pooler = dense(config.hidden_size, config, name="pooler")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        if self.built:
            return
        with tf.name_scope("encoder/"):  # Absolute, and whatever the name: checkpoints say so.
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
        streams, layers = self._layers(inputs, None, training, seed)
        outputs = [
            _joined([stream.layout.to_padded(rows) for stream, rows in zip(streams, of_layer)])
            for of_layer in zip(*layers, strict=True)
        ]
        return {
            "sequence_output": outputs[-1],
            "pooled_output": self.pool(outputs[-1][:, 0]),
            "encoder_outputs": outputs,
        }

    def hidden_at(
        self,
        inputs: dict[str, tf.Tensor],
        positions: tf.Tensor,
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """The sequence output at some positions, and nothing of the last layer elsewhere.

        Args:
          inputs, training, seed: as for `call`.
          positions: int32 [B, P].

        Returns:
          float [B, P, H].
        """
        _, layers = self._layers(inputs, positions, training, seed)
        shape = tf.shape(positions)
        hidden = _joined([of_stream[-1] for of_stream in layers])
        return tf.reshape(hidden, [shape[0], shape[1], self.config.hidden_size])

    def pool(self, first: tf.Tensor) -> tf.Tensor:
        """The pooled output, float [B, H], from the sequence output at position 0 [B, H]."""
        return tf.tanh(self.pooler(first))

    @tf.autograph.experimental.do_not_convert  # Nothing to convert, and tracing is twice as fast.
    def _layers(
        self,
        inputs: dict[str, tf.Tensor],
        positions: tf.Tensor | None,
        training: bool,
        seed: tf.Tensor | None,
    ) -> tuple[list[Stream], list[list[tf.Tensor]]]:
        """The embedded batch, in the parts that go through the layers side by side, and for each of
        them the output of every layer; see SharedTransformer.call for their shapes.
        """
        keys = ("input_word_ids", "input_type_ids", "input_mask")
        batch = (*(inputs[key] for key in keys), positions)
        # Whoever recomputes activations prefers less memory to less time.
        recompute = training and self.config.recompute
        sizes = None if recompute else stream_sizes(inputs["input_mask"])
        parts = [batch] if sizes is None else _split(batch, sizes)
        streams = [
            self._stream(*part, training=training, seed=fold_in(seed, index))
            for index, part in enumerate(parts)
        ]
        return streams, self.transformer(streams, training=training)

    def _stream(
        self,
        word_ids: tf.Tensor,
        type_ids: tf.Tensor,
        mask: tf.Tensor,
        positions: tf.Tensor | None,
        training: bool,
        seed: tf.Tensor | None,
    ) -> Stream:
        layout = make_layout(mask, self.packed, training)
        rows = self.embeddings(word_ids, type_ids, layout, training=training, seed=fold_in(seed, 0))
        return Stream(rows, mask, layout, positions, fold_in(seed, 1))


def _split(
    batch: tuple[tf.Tensor | None, ...], sizes: list[int]
) -> list[tuple[tf.Tensor | None, ...]]:
    """Tensors [B, ...] in parts of given sizes; None stays None."""
    parts = [[None] * len(sizes) if tensor is None else tf.split(tensor, sizes) for tensor in batch]
    return list(zip(*parts, strict=True))


def _joined(parts: list[tf.Tensor]) -> tf.Tensor:
    return parts[0] if len(parts) == 1 else tf.concat(parts, axis=0)
