"""The encoder as a TF-Hub reusable SavedModel, to train further.

It follows TF-Hub's common API for text ("Transformer encoders"). It is a tf.train.Checkpoint
because that API wants attributes named `variables` and `trainable_variables`, which tf.Module owns.
Core ops only, so that loading it needs no tensorflow_text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from data_pipeline.tokenizers.base import Tokenizer
from export.encoding import encode_batch
from export.finetuned import outputs_of
from export.graphs.checks import checked_tokens
from export.model_folder import LoadedModel
from export.probes import PAIRS, TEXTS, Export, Probe
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    TOKENS,
    Signatures,
    graph_function,
    tokens_spec,
    track_files,
)

if TYPE_CHECKING:
    from albert_tf.models import AlbertEncoder
    from albert_tf.models.heads import MaskedLMHead


class EncoderModule(tf.train.Checkpoint):
    """`encoder(inputs, training)`: dict of three int32 [B, S] -> dict of float32 tensors.

    The result holds `sequence_output` [B, S, H], `pooled_output` [B, H], `default` (that is
    pooled_output once more) and `encoder_outputs`, a list of [B, S, H]. `training` is a Python
    bool; dropout acts only with True. `encoder.mlm(inputs, training)`, with the further input
    `masked_lm_positions` int32 [B, P], gives `mlm_logits` [B, P, V] as well; its variables are the
    encoder's and the head's.

    Args:
      encoder: AlbertEncoder.
      files: paths of the files to carry along as assets.
      masked_lm: the head of a pre-trained model; None: there is no `mlm`.
    """

    def __init__(
        self,
        encoder: AlbertEncoder,
        files: Sequence[str],
        masked_lm: MaskedLMHead | None = None,
    ) -> None:
        super().__init__()
        _name_variables(self, encoder)
        track_files(self, files)

        # A closure, because an attribute would make Keras save its own traces of the encoder too.
        @graph_function
        def call(inputs: dict[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
            outputs = encoder({spec.name: inputs[spec.name] for spec in TOKENS}, training=training)
            return {**outputs, "default": outputs["pooled_output"]}

        @graph_function(input_signature=TOKENS)
        def serve_tokens(input_word_ids, input_mask, input_type_ids):
            tokens = checked_tokens(input_word_ids, input_mask, input_type_ids, encoder.config)
            outputs = call(tokens, training=False)
            return {name: outputs[name] for name in ("sequence_output", "pooled_output")}

        for training in (False, True):
            call.get_concrete_function({spec.name: spec for spec in TOKENS}, training=training)
        self.__call__ = call
        self.serve_tokens = serve_tokens
        if masked_lm is not None:
            self.mlm = _masked_lm(encoder, masked_lm, call)

    def signatures(self) -> Signatures:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.serve_tokens, "tokens": self.serve_tokens}


def _name_variables(module: tf.train.Checkpoint, *layers: Any) -> None:
    """Gives an object the attributes by which TF-Hub finds what to train."""
    module.variables = [each for layer in layers for each in layer.variables]
    module.trainable_variables = [each for layer in layers for each in layer.trainable_variables]
    module.regularization_losses = []


def _masked_lm(
    encoder: AlbertEncoder,
    head: MaskedLMHead,
    encode: tf.types.experimental.GenericFunction,
) -> tf.train.Checkpoint:
    """The object `mlm` of TF-Hub's encoders, see EncoderModule; `encode` is the encoder's call."""
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


def encoder_probes(
    encoder: AlbertEncoder, vocabulary: Tokenizer, max_seq_length: int
) -> list[Probe]:
    """Probes of EncoderModule's signatures."""
    inputs = encode_batch(vocabulary, TEXTS, max_seq_length, PAIRS)
    outputs = outputs_of(encoder, inputs)
    expected = {name: outputs[name] for name in ("sequence_output", "pooled_output")}
    return [Probe(name, inputs, expected) for name in (DEFAULT_SIGNATURE, "tokens")]


def export(loaded: LoadedModel) -> Export:
    """The module of an encoder, of whatever model it is a part, and its probes."""
    module = EncoderModule(loaded.encoder, loaded.files(), getattr(loaded.model, "masked_lm", None))
    return module, encoder_probes(loaded.encoder, loaded.vocabulary, loaded.max_seq_length)
