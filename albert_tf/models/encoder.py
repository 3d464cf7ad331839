"""AlbertEncoder: embed -> project -> shared groups -> pool."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras, policy_scope
from albert_tf.layers.basic import build_children, dense_layer
from albert_tf.layers.blocks import ObservedOperations, Operations
from albert_tf.layers.embedding import AlbertEmbedding
from albert_tf.layers.fast.operations import operations_for
from albert_tf.layers.forward_pass import ForwardPass, attention_bias
from albert_tf.layers.operations import Seed, fold_in
from albert_tf.layers.packing import make_layout
from albert_tf.layers.transformer import SharedTransformer
from albert_tf.models.base import AlbertModel
from albert_tf.models.inputs import complete_inputs


@keras.utils.register_keras_serializable("albert_tf")
class AlbertEncoder(AlbertModel):
    """The ALBERT encoder (Lan et al., ICLR 2020; google-research/albert, modeling.py).

    Inputs, a dict: `input_word_ids`, `input_mask` (1 for real tokens; missing: all are) and
    `input_type_ids` (segment; missing: 0), integers [B, S]; or word ids alone.
    Outputs, a dict: `sequence_output` float [B, S, H]; `pooled_output` float [B, H], tanh of a
    dense layer on the first position; `encoder_outputs`, a list of L * inner_group_num tensors
    float [B, S, H]; on request `attention_probs`, as many tensors float [B, N, S, S].
    At padding, sequence and encoder outputs and rows of probabilities are unspecified.
    """

    saved_as = "encoder"

    def __init__(
        self,
        config: AlbertConfig | dict[str, Any] | None = None,
        packed: bool | None = None,
        name: str = "encoder",
        **kwargs: Any,
    ) -> None:
        """If `config` is None, `kwargs` has its fields: AlbertEncoder(vocab_size=30000, ...)."""
        fields = {key: kwargs.pop(key) for key in AlbertConfig.field_names() if key in kwargs}
        if (config is None) == (not fields):
            raise ValueError(
                f"Expected a configuration, or its fields by name; received {config or 'none'} and "
                f"{fields or 'no field'}. Write AlbertEncoder(vocab_size=30000, ...)."
            )
        super().__init__(config or fields, packed, name, **kwargs)
        self.operations: Operations | None = None  # Set by code that records a pass.
        config = self.config
        with policy_scope(self.dtype_policy):
            self.embeddings = AlbertEmbedding(config, name="embeddings")
            self.transformer = SharedTransformer(config, name="transformer")
            # Reads position 0, the [CLS] of every text. Sentence-order prediction trains this
            # vector, and heads for whole texts build on it.
            self.pooler = dense_layer(config.hidden_size, config, "pooler", activation="tanh")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        if self.built:
            return
        with tf.name_scope("encoder/"):  # Absolute and fixed, as in checkpoints.
            for part in (self.embeddings, self.transformer):
                with tf.name_scope(part.name):
                    part.build()
            build_children(self.config.hidden_size, self.pooler)
        self.built: bool = True

    def call(
        self,
        inputs: dict[str, tf.Tensor],
        training: bool = False,
        seed: Seed = None,
        output_attentions: bool = False,
    ) -> dict[str, Any]:
        """The outputs, see the class; with `output_attentions` also `attention_probs`, before
        dropout.
        """
        # No fast form returns probabilities, so the layers then use the plain formulas and
        # recompute nothing.
        observed = ObservedOperations() if output_attentions else None
        outputs = self._layers(inputs, None, training, seed, observed or self.operations)
        result = {
            "sequence_output": outputs[-1],
            "pooled_output": self.pooler(outputs[-1][:, 0]),
            "encoder_outputs": outputs,
        }
        if observed:
            result["attention_probs"] = observed.attention_probs
        return result

    def hidden_at(
        self,
        inputs: dict[str, tf.Tensor],
        positions: tf.Tensor,
        training: bool = False,
        seed: Seed = None,
    ) -> tf.Tensor:
        """The sequence output at positions, float [B, P, H]."""
        # The last layer computes only these: of 128 positions, the heads of pre-training read
        # about 20, and a classifier reads one.
        (hidden,) = self._layers(inputs, positions, training, seed, self.operations)
        return hidden

    @tf.autograph.experimental.do_not_convert  # Nothing to convert, and tracing is twice as fast.
    def _layers(
        self,
        inputs: dict[str, tf.Tensor],
        positions: tf.Tensor | None,
        training: bool,
        seed: Seed,
        operations: Operations | None,
    ) -> list[tf.Tensor]:
        """The outputs of all layers, [B, S, H], or of the last one at positions, [B, P, H]."""
        # `training` enables dropout. Here it also implies a gradient, for which Keras has no flag.
        operations = operations or operations_for(training, self.config.recompute)

        # A fast form calls this on parts of the batch, so everything that depends on the batch is
        # computed inside.
        def run(word_ids, type_ids, mask, positions) -> list[tf.Tensor]:
            layout = make_layout(mask, operations.row_multiple, self.packed)
            forward = ForwardPass(operations, layout, attention_bias(mask), training)
            x = self.embeddings(word_ids, type_ids, layout, training, fold_in(seed, 0))
            outputs = self.transformer(x, forward, positions, fold_in(seed, 1))
            if positions is None:
                return [layout.to_padded(output) for output in outputs]
            shape = tf.shape(positions)
            return [tf.reshape(outputs[-1], [shape[0], shape[1], self.config.hidden_size])]

        inputs = complete_inputs(inputs)
        ids, types = inputs["input_word_ids"], inputs["input_type_ids"]
        return operations.in_parts(run, [ids, types, inputs["input_mask"], positions])
