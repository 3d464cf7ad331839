"""TF-Hub reusable SavedModels: an encoder to train further, and the preprocessor that feeds it.

Both follow TF-Hub's common API for text ("Transformer encoders", "text preprocessors"). They are
tf.train.Checkpoint objects because that API wants attributes named `variables` and
`trainable_variables`, which tf.Module owns. The encoder uses core ops only, so that loading it
needs no tensorflow_text; the preprocessor needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from data_pipeline.tokenizers.text_graph import TextEncoder
from export.signatures import DEFAULT_SIGNATURE, TOKENS, graph_function, named, track_files

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

    def signatures(self) -> dict[str, tf.types.experimental.GenericFunction]:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.serve_tokens, "tokens": self.serve_tokens}


class PreprocessorModule(tf.train.Checkpoint):
    """`preprocessor(text)`: string [B] -> the encoder's inputs, int32 [B, default_seq_length].

    Sub-objects, all callable: `tokenize(text)` -> int32 RaggedTensor [B, (tokens)];
    `tokenize.get_special_tokens_dict()`; `bert_pack_inputs([a] or [a, b], seq_length=...)` -> the
    encoder's inputs.

    Args:
      text: tokenizer and packing; its `max_seq_length` is the default length.
      special_tokens: ids by TF-Hub's names, e.g. `start_of_sequence_id`.
      files: paths of the files to carry along as assets.
    """

    def __init__(
        self, text: TextEncoder, special_tokens: dict[str, int], files: Sequence[str]
    ) -> None:
        super().__init__()
        self.text_encoder = text
        # The hub API reads these; a preprocessor has nothing to train.
        self.variables: list[tf.Variable] = []
        self.trainable_variables: list[tf.Variable] = []
        self.regularization_losses: list[tf.Tensor] = []
        track_files(self, files)

        @graph_function(input_signature=[named("text")])
        def preprocess(text_batch: tf.Tensor) -> dict[str, tf.Tensor]:
            return pad_to_length(text(text_batch), text.max_seq_length, text.pad_id)

        self.__call__ = preprocess
        self.tokenize = _callable(graph_function(text.tokenize, input_signature=[named("text")]))
        special = graph_function(
            functools.partial(_constants, dict(special_tokens)), input_signature=[]
        )
        self.tokenize.get_special_tokens_dict = _callable(special)
        self.bert_pack_inputs = _callable(_pack_function(text))

    def signatures(self) -> dict[str, tf.types.experimental.GenericFunction]:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.__call__}


def _callable(function: tf.types.experimental.GenericFunction) -> tf.train.Checkpoint:
    """A method of the hub API: an object of its own, which can be called after loading."""
    holder = tf.train.Checkpoint()
    holder.__call__ = function
    return holder


def _constants(values: dict[str, int]) -> dict[str, tf.Tensor]:
    return {name: tf.constant(value, tf.int32) for name, value in values.items()}


def _pack_function(text: TextEncoder) -> tf.types.experimental.GenericFunction:
    """bert_pack_inputs, traced for one and for two segments."""

    @graph_function
    def bert_pack_inputs(segments: list[tf.RaggedTensor], seq_length) -> dict[str, tf.Tensor]:
        second = segments[1] if len(segments) > 1 else None
        packed = text.pack(segments[0], second, seq_length)
        return pad_to_length(packed, seq_length, text.pad_id)

    ragged = tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)
    for count in (1, 2):
        bert_pack_inputs.get_concrete_function(
            [ragged] * count, tf.TensorSpec([], tf.int32, "seq_length")
        )
    return bert_pack_inputs


def pad_to_length(
    inputs: dict[str, tf.Tensor], length: int | tf.Tensor, pad_id: int
) -> dict[str, tf.Tensor]:
    """int32 [B, S] -> int32 [B, length], the word ids with `pad_id`, mask and types with 0."""
    padded = {}
    for name, value in inputs.items():
        missing = length - tf.shape(value)[1]
        filler = pad_id if name == "input_word_ids" else 0
        wide = tf.pad(value, [[0, 0], [0, missing]], constant_values=filler)
        padded[name] = tf.ensure_shape(wide, [None, length if isinstance(length, int) else None])
    return padded
