"""The model of recurring-span selection: a pretrainer with the head of SQuAD 1.1."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.operations import Seed
from albert_tf.models.heads import OutputHead
from albert_tf.models.inputs import complete_inputs
from albert_tf.models.pretrainer import AlbertPretrainer
from albert_tf.models.spans import position_mask
from albert_tf.models.task_model import Tensors


@keras.utils.register_keras_serializable("albert_tf")
class AlbertSpanPretrainer(AlbertPretrainer):
    """An AlbertPretrainer that also points to spans of its text, with AlbertSpanLabeler's head.

    Inputs and outputs: those of AlbertPretrainer, and `start_logits`, `end_logits` float32 [B, S]
    for where the spans that [MASK]s stand for are visible; very low at padding.
    """

    default_name, saved_as = "span_pretrainer", "span_pretraining"
    settings = ("span_mask_share",)

    def __init__(self, config: AlbertConfig, span_mask_share: float = 0.06, **kwargs: Any) -> None:
        """
        Args:
          span_mask_share: [MASK]s that stand for recurring spans in training, as a share of the
            tokens.
        """
        super().__init__(config, **kwargs)
        self.span_mask_share = span_mask_share
        self.span = self.new_head(OutputHead, 2, name="span", per_token=True)

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> Tensors:
        inputs = complete_inputs(inputs, also=("masked_lm_positions",))
        # The whole sequence, unlike in AlbertPretrainer: the span head reads every position.
        outputs = self.encoder(inputs, training=training, seed=seed)
        hidden = outputs["sequence_output"]  # [B, S, H]
        start, end = tf.unstack(self.span(hidden), axis=-1)
        mask = position_mask(1 - inputs["input_mask"])
        at_masks = tf.gather(hidden, inputs["masked_lm_positions"], batch_dims=1)  # [B, P, H]
        words = self.encoder.embeddings.word_embeddings
        return {
            "masked_lm_logits": self.masked_lm(at_masks, words),
            "sentence_order_logits": self.sentence_order(outputs["pooled_output"]),
            "pooled_output": outputs["pooled_output"],
            "start_logits": start + mask,
            "end_logits": end + mask,
        }

    def without_spans(self) -> AlbertPretrainer:
        """A copy without the span head, for formats of other software, which have none."""
        plain = AlbertPretrainer(self.config, packed=self.packed, dtype=self.dtype_policy)
        _copy_weights(self, plain)
        return plain

    def take_weights(self, plain: AlbertPretrainer) -> None:
        """Takes the weights of all parts except the span head from `plain`."""
        _copy_weights(plain, self)


def _copy_weights(source: AlbertPretrainer, target: AlbertPretrainer) -> None:
    for part in ("encoder", "masked_lm", "sentence_order"):
        getattr(target, part).set_weights(getattr(source, part).get_weights())
