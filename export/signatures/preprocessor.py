"""The preprocessor as a TF-Hub SavedModel: texts -> the inputs of an encoder.

It follows TF-Hub's common API for text ("text preprocessors"); see encoder.py.
"""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf

from data_pipeline.finetuning.features import encode_texts
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import align_graph
from data_pipeline.tokenizers.text_graph import TextEncoder
from export.encoding import text_examples
from export.graphs.checks import same_rows
from export.model_folder import LoadedModel
from export.probes import TEXTS, Expected
from export.signatures.common import DEFAULT_SIGNATURE, Signatures, graph_function, named

_MOST_SEGMENTS = 4


class PreprocessorModule(tf.train.Checkpoint):
    """`preprocessor(text)`: string [B] -> the encoder's inputs, int32 [B, max_seq_length].

    Callable sub-objects: `tokenize(text)` -> int32 RaggedTensor [B, (tokens)];
    `tokenize_with_offsets(text)` -> the same, and int64 RaggedTensors with the byte offsets at
    which each token begins and ends; `tokenize.get_special_tokens_dict()`; `bert_pack_inputs([a, b,
    ...], seq_length=max_seq_length)`, one to four segments -> the encoder's inputs.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__()
        self.text_encoder = text = loaded.text_encoder()
        # The TF-Hub API reads these attributes; a preprocessor has nothing to train.
        self.variables: list[tf.Variable] = []
        self.trainable_variables: list[tf.Variable] = []
        self.regularization_losses: list[tf.Tensor] = []
        self.files = [tf.saved_model.Asset(path) for path in loaded.files()]

        @graph_function(input_signature=[named("text")])
        def preprocess(text_batch: tf.Tensor) -> dict[str, tf.Tensor]:
            rows = tf.shape(text_batch)[0]
            return pad_to_length(text(text_batch), rows, text.max_seq_length, text.pad_id)

        @graph_function(input_signature=[named("text")])
        def serve_text(text_batch: tf.Tensor) -> dict[str, tf.Tensor]:
            return preprocess(*same_rows(text=text_batch))

        self.__call__ = preprocess
        self.serve_text = serve_text
        tokenize, with_offsets = (
            graph_function(functools.partial(each, text), input_signature=[named("text")])
            for each in (_tokenize, tokenize_with_offsets)
        )
        self.tokenize = _callable(tokenize)
        self.tokenize_with_offsets = _callable(with_offsets)
        special = graph_function(
            functools.partial(_special_tokens, loaded.vocabulary), input_signature=[]
        )
        self.tokenize.get_special_tokens_dict = _callable(special)
        self.tokenize_with_offsets.get_special_tokens_dict = self.tokenize.get_special_tokens_dict
        self.bert_pack_inputs = _callable(_pack_function(text))

    def signatures(self) -> Signatures:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.serve_text}


def _tokenize(encoder: TextEncoder, text: tf.Tensor) -> tf.RaggedTensor:
    """string [B] -> int32 [B, (tokens)]."""
    return _with_rows_of(text, encoder.tokenize(text))


def _with_rows_of(text: tf.Tensor, tokens: tf.RaggedTensor) -> tf.RaggedTensor:
    """Tokens [B, (tokens)] with the static B of the texts, see `pad_to_length`."""
    splits = tf.reshape(tokens.row_splits, [tf.shape(text)[0] + 1])
    return tf.RaggedTensor.from_row_splits(tokens.flat_values, splits, validate=False)


def tokenize_with_offsets(
    encoder: TextEncoder, text: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """string [B] -> tokens int32, starts and limits int64 [B, (tokens)], as byte offsets."""
    characters = Characters(text)
    ids, firsts, lasts = align_graph(encoder.tokenizer, characters)
    ids = _with_rows_of(text, ids)
    rows = ids.value_rowids()
    starts = firsts.flat_values
    # A word mark that stands for no character ends before its start.
    limits = tf.maximum(lasts.flat_values + 1, starts)
    starts, limits = (
        ids.with_values(tf.cast(characters.bytes_at(rows, each), tf.int64))
        for each in (starts, limits)
    )
    return ids, starts, limits


def _callable(function: tf.types.experimental.GenericFunction) -> tf.train.Checkpoint:
    """A method of the TF-Hub API: a separate object that can be called after loading."""
    holder = tf.train.Checkpoint()
    holder.__call__ = function
    return holder


def _special_tokens(vocabulary: Tokenizer) -> dict[str, tf.Tensor]:
    """Special ids and size of a vocabulary by TF-Hub's names, int32 []."""
    numbers = {
        "vocab_size": vocabulary.vocab_size,
        "start_of_sequence_id": vocabulary.cls_id,
        "end_of_segment_id": vocabulary.sep_id,
        "padding_id": vocabulary.pad_id,
        "mask_id": vocabulary.mask_id,
    }
    return {name: tf.constant(number, tf.int32) for name, number in numbers.items()}


def _pack_function(text: TextEncoder) -> tf.types.experimental.GenericFunction:
    """bert_pack_inputs, traced for one to four segments, and for one or two split into words."""

    @graph_function
    def bert_pack_inputs(
        segments: list[tf.RaggedTensor], seq_length: int | tf.Tensor = text.max_seq_length
    ) -> dict[str, tf.Tensor]:
        tokens = [segment.merge_dims(1, segment.ragged_rank) for segment in segments]
        packed = text.pack(*tokens, max_seq_length=seq_length)
        return pad_to_length(packed, segments[0].nrows(tf.int32), seq_length, text.pad_id)

    for ragged_rank, most in ((1, _MOST_SEGMENTS), (2, 2)):  # Only traced functions are saved.
        segment = tf.RaggedTensorSpec([None] * (ragged_rank + 1), tf.int32)
        for count in range(1, most + 1):
            bert_pack_inputs.get_concrete_function(
                [segment] * count, tf.TensorSpec([], tf.int32, "seq_length")
            )
    return bert_pack_inputs


def pad_to_length(
    inputs: dict[str, tf.Tensor], rows: tf.Tensor, length: int | tf.Tensor, pad_id: int
) -> dict[str, tf.Tensor]:
    """int32 [B, S] -> int32 [B, length]: pads word ids with `pad_id`, mask and types with 0. `rows`
    is B.
    """
    padded = {}
    # With a shape built from B and length, TensorFlow can infer static values that a caller knows,
    # even in a loaded function: TPUs need static shapes.
    shape = tf.stack([rows, length])
    for name, value in inputs.items():
        filler = pad_id if name == "input_word_ids" else 0
        missing = length - tf.shape(value)[1]
        wide = tf.pad(value, [[0, 0], [0, missing]], constant_values=filler)
        padded[name] = tf.reshape(wide, shape)
    return padded


def expected(loaded: LoadedModel) -> Expected:
    """The expected ids, from the Python tokenizer, padded to the full length."""
    vocabulary = loaded.vocabulary
    inputs = encode_texts(text_examples(TEXTS), vocabulary, loaded.max_seq_length).inputs()
    is_real = inputs["input_mask"] > 0
    inputs["input_word_ids"] = np.where(is_real, inputs["input_word_ids"], vocabulary.pad_id)
    return Expected({DEFAULT_SIGNATURE: inputs})
