"""The encoder as a TF-Hub reusable SavedModel, for further training.

It follows TF-Hub's common API for text ("Transformer encoders") and uses only core operations, so
loading it does not need tensorflow_text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer
from export.encoding import encode_batch
from export.finetuned import outputs_of
from export.graphs.checks import checked_tokens
from export.model_folder import LoadedModel
from export.probes import PAIRS, TEXTS, Expected
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    TOKENS,
    Signatures,
    graph_function,
    tokens_spec,
)

if TYPE_CHECKING:
    from albert_tf.models import AlbertEncoder
    from albert_tf.models.heads import MaskedLMHead


# A tf.train.Checkpoint, because the API requires attributes named `variables` and
# `trainable_variables`, which are properties of tf.Module.
class EncoderModule(tf.train.Checkpoint):
    """`encoder(inputs, training)`: dict of three int32 [B, S] -> dict of float32 tensors.

    The result has `sequence_output` [B, S, H], `pooled_output` [B, H], `default` (the same as
    pooled_output) and `encoder_outputs`, a list of [B, S, H]. `training` is a Python bool; dropout
    is applied only if True. A model with a masked-LM head also has `encoder.mlm(inputs, training)`,
    with the additional input `masked_lm_positions` int32 [B, P] and output `mlm_logits` [B, P, V];
    its variables are those of encoder and head. The vocabulary is the asset `sp_model_file`, or for
    WordPiece the asset `vocab_file`, with the variable `do_lower_case`.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__()
        encoder = loaded.encoder
        _name_variables(self, encoder)
        self.files = [tf.saved_model.Asset(path) for path in loaded.files()]
        # For notebooks older than TF-Hub's preprocessors, which read the module's vocabulary.
        vocabulary = tf.saved_model.Asset(loaded.vocabulary.vocab_file)
        if isinstance(loaded.vocabulary, WordPieceTokenizer):
            self.vocab_file = vocabulary
            self.do_lower_case = tf.Variable(loaded.vocabulary.settings.lower, trainable=False)
        else:
            self.sp_model_file = vocabulary

        # A closure: as an attribute, Keras would also save its own traces of the encoder.
        @graph_function
        def call(inputs: dict[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
            outputs = encoder({spec.name: inputs[spec.name] for spec in TOKENS}, training=training)
            return {**outputs, "default": outputs["pooled_output"]}

        @graph_function(input_signature=TOKENS)
        def serve_tokens(input_word_ids, input_mask, input_type_ids):
            tokens = checked_tokens(input_word_ids, input_mask, input_type_ids, encoder.config)
            outputs = call(tokens, training=False)
            return {name: outputs[name] for name in ("sequence_output", "pooled_output")}

        # Only traced functions are saved, and users may call either variant.
        for training in (False, True):
            call.get_concrete_function({spec.name: spec for spec in TOKENS}, training=training)
        self.__call__ = call
        self.serve_tokens = serve_tokens
        if hasattr(loaded.model, "masked_lm"):
            self.mlm = _masked_lm(encoder, loaded.model.masked_lm, call)

    def signatures(self) -> Signatures:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.serve_tokens, "tokens": self.serve_tokens}


def _name_variables(module: tf.train.Checkpoint, *layers: Any) -> None:
    """Sets the attributes in which TF-Hub looks for trainable variables."""
    module.variables = [each for layer in layers for each in layer.variables]
    module.trainable_variables = [each for layer in layers for each in layer.trainable_variables]
    module.regularization_losses = []


def _masked_lm(
    encoder: AlbertEncoder, head: MaskedLMHead, encode: tf.types.experimental.GenericFunction
) -> tf.train.Checkpoint:
    """The `mlm` object of TF-Hub's encoders, see EncoderModule; `encode` calls the encoder."""
    module = tf.train.Checkpoint()
    _name_variables(module, encoder, head)

    @graph_function
    def call(inputs: dict[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
        outputs = encode({spec.name: inputs[spec.name] for spec in TOKENS}, training=training)
        hidden = tf.gather(
            outputs["sequence_output"], inputs["masked_lm_positions"], batch_dims=1
        )  # [B, P, H]
        return {**outputs, "mlm_logits": head(hidden, encoder.embeddings.word_embeddings)}

    specs = {spec.name: spec for spec in (*TOKENS, tokens_spec("masked_lm_positions"))}
    for training in (False, True):
        call.get_concrete_function(specs, training=training)
    module.__call__ = call
    return module


def expected(loaded: LoadedModel) -> Expected:
    """The expected encoder outputs from Keras, for both names of the one signature."""
    tokens = encode_batch(loaded.vocabulary, TEXTS, loaded.max_seq_length, PAIRS)
    outputs = outputs_of(loaded.encoder, tokens)
    served = {name: outputs[name] for name in ("sequence_output", "pooled_output")}
    return Expected({DEFAULT_SIGNATURE: served, "tokens": served}, tokens)
