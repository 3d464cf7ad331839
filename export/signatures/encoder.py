"""The encoder as a TF-Hub reusable SavedModel, to train further.

It follows TF-Hub's common API for text ("Transformer encoders"). It is a tf.train.Checkpoint
because that API wants attributes named `variables` and `trainable_variables`, which tf.Module owns.
Core ops only, so that loading it needs no tensorflow_text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from data_pipeline.tokenizers.base import Tokenizer
from export.encoding import encode_batch
from export.model_folder import LoadedModel
from export.probes import PAIRS, TEXTS, Export, Probe
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    TOKENS,
    Signatures,
    graph_function,
    tensors,
    track_files,
)

if TYPE_CHECKING:
    from albert_tf.encoder import AlbertEncoder


class EncoderModule(tf.train.Checkpoint):
    """`encoder(inputs, training)`: dict of three int32 [B, S] -> dict of float32 tensors.

    The result holds `sequence_output` [B, S, H], `pooled_output` [B, H], `default` (that is
    pooled_output once more) and `encoder_outputs`, a list of [B, S, H]. `training` is a Python
    bool; dropout acts only with True.

    Args:
      encoder: AlbertEncoder.
      files: paths of the files to carry along as assets.
    """

    def __init__(self, encoder: AlbertEncoder, files: Sequence[str]) -> None:
        super().__init__()
        self.variables = list(encoder.variables)
        self.trainable_variables = list(encoder.trainable_variables)
        self.regularization_losses: list[tf.Tensor] = []
        track_files(self, files)

        # A closure, because an attribute would make Keras save its own traces of the encoder too.
        @graph_function
        def call(inputs: dict[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
            outputs = encoder(inputs, training=training)
            return {**outputs, "default": outputs["pooled_output"]}

        @graph_function(input_signature=TOKENS)
        def serve_tokens(input_word_ids, input_mask, input_type_ids):
            outputs = call(
                {
                    "input_word_ids": input_word_ids,
                    "input_mask": input_mask,
                    "input_type_ids": input_type_ids,
                },
                training=False,
            )
            return {name: outputs[name] for name in ("sequence_output", "pooled_output")}

        for training in (False, True):
            call.get_concrete_function({spec.name: spec for spec in TOKENS}, training=training)
        self.__call__ = call
        self.serve_tokens = serve_tokens

    def signatures(self) -> Signatures:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.serve_tokens, "tokens": self.serve_tokens}


def encoder_probes(
    encoder: AlbertEncoder, vocabulary: Tokenizer, max_seq_length: int
) -> list[Probe]:
    """Probes of EncoderModule's signatures."""
    inputs = encode_batch(vocabulary, TEXTS, max_seq_length, PAIRS)
    outputs = encoder(tensors(inputs), training=False)
    expected = {name: outputs[name].numpy() for name in ("sequence_output", "pooled_output")}
    return [Probe(name, inputs, expected) for name in (DEFAULT_SIGNATURE, "tokens")]


def export(loaded: LoadedModel) -> Export:
    """The module of an encoder, of whatever model it is a part, and its probes."""
    module = EncoderModule(loaded.encoder, loaded.files())
    return module, encoder_probes(loaded.encoder, loaded.vocabulary, loaded.max_seq_length)
