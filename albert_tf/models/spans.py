"""Models that locate an answer in a text: for SQuAD 1.1, and for 2.0 with its head."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.basic import LayerNorm, SeededDropout, build_children, dense_layer
from albert_tf.layers.forward_pass import MASKED
from albert_tf.layers.operations import Seed, fold_in
from albert_tf.models.heads import OutputHead
from albert_tf.models.inputs import complete_inputs
from albert_tf.models.task_model import TaskModel, Tensors


def position_mask(impossible: tf.Tensor) -> tf.Tensor:
    """int32 [B, S], 1 where no answer may start or end -> float32 [B, S], added to logits."""
    return MASKED * tf.cast(impossible, tf.float32)


class SpanHead(keras.layers.Layer):
    """Scores of starts, of ends given a start, and of "no answer", as in google-research/albert's
    run_squad_v2.
    """

    # Ends are scored as p(end | start), from the hidden states of both. Training uses the gold
    # start. Otherwise it is not known, so each of the K likeliest starts gets its own J likeliest
    # ends: a beam, whose best pair is chosen when the answer is extracted from the text.
    def __init__(
        self,
        config: AlbertConfig,
        start_n_top: int = 5,
        end_n_top: int = 5,
        dropout_rate: float = 0.1,
        **kwargs,
    ) -> None:
        """
        Args:
          start_n_top: K, the number of starts in the beam.
          end_n_top: J, the number of ends for each of them.
          dropout_rate: of dropout before the logit of "no answer", in training; 0.1 in the
            reference, independent of the configuration.
        """
        super().__init__(**kwargs)
        hidden = config.hidden_size
        self._hidden, self.start_n_top, self.end_n_top = hidden, start_n_top, end_n_top
        self.start_logits = dense_layer(1, config, name="start_logits")
        self.end_transform = dense_layer(hidden, config, name="end_transform")
        self.end_layer_norm = LayerNorm(config, name="end_layer_norm")
        self.end_logits = dense_layer(1, config, name="end_logits")
        self.answer_transform = dense_layer(hidden, config, name="answer_transform")
        self.answer_dropout = SeededDropout(dropout_rate, name="answer_dropout")
        self.answer_logits = dense_layer(1, config, name="answer_logits", use_bias=False)

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        hidden = self._hidden
        build_children(hidden, self.start_logits)
        build_children(2 * hidden, self.end_transform)
        build_children(hidden, self.end_layer_norm, self.end_logits)
        build_children(2 * hidden, self.answer_transform)
        build_children(hidden, self.answer_logits)
        super().build(input_shape)

    def call(
        self,
        hidden: tf.Tensor,
        impossible: tf.Tensor,
        start_positions: tf.Tensor | None = None,
        training: bool = False,
        seed: Seed = None,
    ) -> dict[str, tf.Tensor]:
        """Log-probabilities of starts and ends, and the logit of "no answer".

        Args:
          hidden: float [B, S, H], the sequence output.
          impossible: int32 [B, S], 1 where no answer may start or end.
          start_positions: int32 [B], gold starts, in training.

        Returns:
          With start_positions: `start_log_probs`, `end_log_probs` float32 [B, S]. Without, for the
          K likeliest starts and the J likeliest ends of each: `start_top_log_probs` float32 [B, K],
          `start_top_index` int32 [B, K], `end_top_log_probs` float32 [B, K * J], `end_top_index`
          int32 [B, K * J] (start k, end j at k * J + j). Always `answer_logits` float32 [B], high
          where there is no answer.
        """
        mask = position_mask(impossible)  # [B, S]
        start_logits = tf.cast(self.start_logits(hidden)[..., 0], tf.float32) + mask
        start_log_probs = tf.nn.log_softmax(start_logits)  # [B, S]
        outputs = {"answer_logits": self._answer(hidden, start_logits, training, seed)}
        if start_positions is not None:
            starts = start_positions[:, None]  # [B, 1]
            ends = self._end_log_probs(hidden, starts, mask)[:, 0]
            return {**outputs, "start_log_probs": start_log_probs, "end_log_probs": ends}
        return {**outputs, **self._beam(hidden, start_log_probs, mask)}

    def _beam(
        self, hidden: tf.Tensor, start_log_probs: tf.Tensor, mask: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The likeliest starts and the likeliest ends of each, see `call`; ValueError if there
        are fewer positions than these.
        """
        widest, length = max(self.start_n_top, self.end_n_top), start_log_probs.shape[1]
        if length is not None and length < widest:
            raise ValueError(
                f"Expected at least {widest} positions, as many as start_n_top and end_n_top; "
                f"received {length}. Pad the sequences (input_mask 0, impossible_positions 1)."
            )
        top_starts = tf.math.top_k(start_log_probs, self.start_n_top)  # [B, K]
        ends = self._end_log_probs(hidden, top_starts.indices, mask)  # [B, K, S]
        top_ends = tf.math.top_k(ends, self.end_n_top)  # [B, K, J]
        # Flat, like the reference's outputs: start k and its end j at k * J + j.
        beam = self.start_n_top * self.end_n_top
        return {
            "start_top_log_probs": top_starts.values,
            "start_top_index": top_starts.indices,
            "end_top_log_probs": tf.reshape(top_ends.values, [-1, beam]),
            "end_top_index": tf.reshape(top_ends.indices, [-1, beam]),
        }

    def _end_log_probs(self, hidden: tf.Tensor, starts: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """For each start, int32 [B, K], log-probabilities of the ends: float32 [B, K, S]."""
        # log softmax(w norm(tanh(W [h_end; h_start]))), of every end with each of the K starts.
        at_start = tf.gather(hidden, starts, batch_dims=1)[:, :, None]  # [B, K, 1, H]
        each = hidden[:, None]  # [B, 1, S, H]
        shape = tf.broadcast_dynamic_shape(tf.shape(at_start), tf.shape(each))  # [B, K, S, H]
        pairs = tf.concat(
            [tf.broadcast_to(each, shape), tf.broadcast_to(at_start, shape)], axis=-1
        )  # [B, K, S, 2H]
        transformed = self.end_layer_norm(tf.tanh(self.end_transform(pairs)))
        logits = tf.cast(self.end_logits(transformed)[..., 0], tf.float32)  # [B, K, S]
        return tf.nn.log_softmax(logits + mask[:, None])

    def _answer(
        self, hidden: tf.Tensor, start_logits: tf.Tensor, training: bool, seed: Seed
    ) -> tf.Tensor:
        """The logit of "no answer", float32 [B], from the likely starts and from position 0."""
        # w tanh(W [sum(p_start h); h_0]): hidden states weighted by the probability that the answer
        # starts there, and [CLS], which attends to the whole text.
        probs = tf.cast(tf.nn.softmax(start_logits), hidden.dtype)  # [B, S]
        starts = tf.linalg.matvec(hidden, probs, transpose_a=True)  # [B, H]
        features = tf.concat([starts, hidden[:, 0]], axis=-1)  # [B, 2H]
        transformed = tf.tanh(self.answer_transform(features))
        dropped = self.answer_dropout(transformed, training=training, seed=seed)
        return tf.cast(self.answer_logits(dropped)[:, 0], tf.float32)


@keras.utils.register_keras_serializable("albert_tf")
class AlbertSpanLabeler(TaskModel):
    """Start and end of an answer, independently (SQuAD 1.1).

    Outputs, a dict: `start_logits`, `end_logits` float32 [B, S], very low at padding.
    """

    default_name, saved_as = "span_labeler", "span"

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.span = self.new_head(OutputHead, 2, name="span", per_token=True)

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> Tensors:
        inputs = complete_inputs(inputs)
        start, end = tf.unstack(self.span(self.sequence_output(inputs, training, seed)), axis=-1)
        # In the reference, padding competes with real tokens. Here it must not, because its hidden
        # states are unspecified: packed rows have none.
        mask = position_mask(1 - inputs["input_mask"])
        return {"start_logits": start + mask, "end_logits": end + mask}


@keras.utils.register_keras_serializable("albert_tf")
class AlbertSpanLabelerV2(TaskModel):
    """Start, end given the start, and whether there is an answer (SQuAD 2.0).

    Further inputs: `impossible_positions` int32 [B, S], 1 where no answer may start or end (the
    reference's p_mask); in training `start_positions` int32 [B]. Outputs and settings: see
    SpanHead.
    """

    default_name, saved_as = "span_labeler_v2", "span_v2"
    settings = ("start_n_top", "end_n_top", "dropout_rate")

    def __init__(
        self,
        config: AlbertConfig,
        start_n_top: int = 5,
        end_n_top: int = 5,
        dropout_rate: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(config, **kwargs)
        self.start_n_top, self.end_n_top, self.dropout_rate = start_n_top, end_n_top, dropout_rate
        beam = (start_n_top, end_n_top)
        self.span = self.new_head(SpanHead, *beam, dropout_rate, name="span", per_token=True)

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> Tensors:
        inputs = complete_inputs(
            inputs, also=("impossible_positions",), if_given=("start_positions",)
        )
        return self.span(
            self.sequence_output(inputs, training, fold_in(seed, 0)),
            inputs["impossible_positions"],
            inputs.get("start_positions"),
            training=training,
            seed=fold_in(seed, 1),
        )
