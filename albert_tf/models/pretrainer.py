"""The model of pre-training: masked language modeling and sentence-order prediction."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.operations import Seed
from albert_tf.models.heads import MaskedLMHead, OutputHead
from albert_tf.models.inputs import complete_inputs
from albert_tf.models.task_model import TaskModel, Tensors


@keras.utils.register_keras_serializable("albert_tf")
class AlbertPretrainer(TaskModel):
    """Masked language model and sentence order (or next sentence), for pre-training.

    Further input: `masked_lm_positions` int32 [B, P].
    Outputs, a dict: `masked_lm_logits` float32 [B, P, V]; `sentence_order_logits` float32 [B, 2],
    class 0 for segments in order and 1 for swapped (SOP) or random ones (NSP); `pooled_output`
    float [B, H].
    """

    default_name, saved_as = "pretrainer", "pretraining"

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.masked_lm = self.new_head(MaskedLMHead, name="masked_lm", per_token=True)
        self.sentence_order = self.new_head(OutputHead, 2, name="sentence_order")

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> Tensors:
        inputs = complete_inputs(inputs, also=("masked_lm_positions",))
        # The positions that heads read, [B, 1 + P]: 0, which the pooler reads, and the masked ones.
        read = tf.pad(inputs["masked_lm_positions"], [[0, 0], [1, 0]])
        hidden = self.encoder.hidden_at(inputs, read, training=training, seed=seed)
        pooled = self.encoder.pooler(hidden[:, 0])
        words = self.encoder.embeddings.word_embeddings
        return {
            "masked_lm_logits": self.masked_lm(hidden[:, 1:], words),
            "sentence_order_logits": self.sentence_order(pooled),
            "pooled_output": pooled,
        }
