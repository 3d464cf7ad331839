"""The preprocessor as a TF-Hub SavedModel: texts -> the inputs of an encoder.

It follows TF-Hub's common API for text ("text preprocessors"); see encoder.py.
"""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import align_graph
from data_pipeline.tokenizers.text_graph import TextEncoder
from export.encoding import encode_batch
from export.graphs.checks import same_rows
from export.model_folder import LoadedModel
from export.probes import TEXTS, Expected
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    Signatures,
    graph_function,
    named,
    track_files,
)

_MOST_SEGMENTS = 4


class PreprocessorModule(tf.train.Checkpoint):
    """`preprocessor(text)`: string [B] -> the encoder's inputs, int32 [B, max_seq_length].

    Sub-objects, all callable: `tokenize(text)` -> int32 RaggedTensor [B, (tokens)];
    `tokenize_with_offsets(text)` -> these, and int64 RaggedTensors with the bytes of the text where
    each begins and ends; `tokenize.get_special_tokens_dict()`; `bert_pack_inputs([a, b, ...],
    seq_length=...)`, one to four segments -> the encoder's inputs.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__()
        self.text_encoder = text = loaded.text_encoder()
        # The hub API reads these; a preprocessor has nothing to train.
        self.variables: list[tf.Variable] = []
        self.trainable_variables: list[tf.Variable] = []
        self.regularization_losses: list[tf.Tensor] = []
        track_files(self, loaded.files())

        @graph_function(input_signature=[named("text")])
        def preprocess(text_batch: tf.Tensor) -> dict[str, tf.Tensor]:
            return pad_to_length(text(text_batch), text.max_seq_length, text.pad_id)

        @graph_function(input_signature=[named("text")])
        def serve_text(text_batch: tf.Tensor) -> dict[str, tf.Tensor]:
            return preprocess(*same_rows(text=text_batch))

        self.__call__ = preprocess
        self.serve_text = serve_text
        self.tokenize = _callable(graph_function(text.tokenize, input_signature=[named("text")]))
        with_offsets = functools.partial(tokenize_with_offsets, text)
        self.tokenize_with_offsets = _callable(
            graph_function(with_offsets, input_signature=[named("text")])
        )
        special = graph_function(
            functools.partial(_special_tokens, loaded.vocabulary), input_signature=[]
        )
        self.tokenize.get_special_tokens_dict = _callable(special)
        self.bert_pack_inputs = _callable(_pack_function(text))

    def signatures(self) -> Signatures:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.serve_text}


def tokenize_with_offsets(
    encoder: TextEncoder, text: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """string [B] -> tokens int32, starts and limits int64 [B, (tokens)], in bytes of the text."""
    characters = Characters(text)
    ids, firsts, lasts = align_graph(encoder.tokenizer, characters)
    rows = ids.value_rowids()
    starts = firsts.flat_values
    # The end of a word mark that stands for no character is before its start.
    limits = tf.maximum(lasts.flat_values + 1, starts)
    starts, limits = (
        ids.with_values(tf.cast(characters.bytes_at(rows, each), tf.int64))
        for each in (starts, limits)
    )
    return ids, starts, limits


def _callable(function: tf.types.experimental.GenericFunction) -> tf.train.Checkpoint:
    """A method of the hub API: an object of its own, which can be called after loading."""
    holder = tf.train.Checkpoint()
    holder.__call__ = function
    return holder


def _special_tokens(vocabulary: Tokenizer) -> dict[str, tf.Tensor]:
    """Ids and size of a vocabulary by TF-Hub's names, int32 []."""
    numbers = {
        "vocab_size": vocabulary.vocab_size,
        "start_of_sequence_id": vocabulary.cls_id,
        "end_of_segment_id": vocabulary.sep_id,
        "padding_id": vocabulary.pad_id,
        "mask_id": vocabulary.mask_id,
    }
    return {name: tf.constant(number, tf.int32) for name, number in numbers.items()}


def _pack_function(text: TextEncoder) -> tf.types.experimental.GenericFunction:
    """bert_pack_inputs, traced for one to four segments."""

    @graph_function
    def bert_pack_inputs(segments: list[tf.RaggedTensor], seq_length) -> dict[str, tf.Tensor]:
        packed = text.pack_segments(segments, seq_length)
        return pad_to_length(packed, seq_length, text.pad_id)

    ragged = tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)
    for count in range(1, _MOST_SEGMENTS + 1):  # Only what was traced is saved.
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


def expected(loaded: LoadedModel) -> Expected:
    """The Python tokenizer's ids, padded to the full length."""
    inputs = encode_batch(loaded.vocabulary, TEXTS, loaded.max_seq_length)
    missing = loaded.max_seq_length - inputs["input_mask"].shape[1]
    fillers = {"input_word_ids": loaded.vocabulary.pad_id, "input_mask": 0, "input_type_ids": 0}
    padded = {
        name: np.pad(inputs[name], [(0, 0), (0, missing)], constant_values=filler)
        for name, filler in fillers.items()
    }
    return Expected({DEFAULT_SIGNATURE: padded})
