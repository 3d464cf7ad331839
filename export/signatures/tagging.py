"""Tagging: a text -> a label for each word, with its position.

Shapes: B batch, S sequence, W words, C classes.
"""

from __future__ import annotations

import re

import numpy as np
import tensorflow as tf

from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.tagging import OUTSIDE, TaggedExample
from data_pipeline.tokenizers.graph_characters import Characters
from export import finetuned
from export.encoding import padded
from export.graphs.checks import required, same_rows
from export.model_folder import LoadedModel
from export.probes import PLACES, TEXTS, Expected, places, text_array
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    TOKENS,
    ModelModule,
    Signatures,
    Tensors,
    graph_function,
    named,
)

_WORDS = tf.TensorSpec([None, None], tf.string, "words")
MOST_WORDS = 1 << 20  # In a batch, including the padding of its rows.
_TOO_MANY_WORDS = (
    f"rows times words of the longest row must be at most {MOST_WORDS}: send long texts one by one"
)
_FILLERS = {"words": "", "labels": "", "probabilities": 0.0}


class TaggingModule(ModelModule):
    """Texts, words or tokens -> labels and probabilities."""

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(loaded)
        self._unknown_id = loaded.vocabulary.unk_id
        self._labels = loaded.labels

    @graph_function(input_signature=[named("text")])
    def serve_text(self, text: tf.Tensor) -> Tensors:
        """string [B] -> a label for each word, split at white space: words, labels string,
        probabilities float32, starts, ends, byte_starts, byte_ends int32 [B, W], padded with "",
        "", 0 and -1; num_words int32 [B]. Ends are exclusive.
        """
        characters = Characters(*same_rows(text=text))
        words = characters.words()
        rows = words.starts.value_rowids()
        # Rows are padded: one text with many words makes all other rows as long.
        is_small = words.texts.nrows() * words.texts.bounding_shape(axis=1) <= MOST_WORDS
        texts, starts, ends = (
            required(each.flat_values, is_small, _TOO_MANY_WORDS)
            for each in (words.texts, words.starts, words.ends)
        )
        in_bytes = (characters.bytes_at(rows, each) for each in (starts, ends))
        texts = words.texts.with_values(texts)
        found = {
            "words": texts,
            **self._tag(texts),
            **{
                name: texts.with_values(each)
                for name, each in zip(PLACES, (starts, ends, *in_bytes))
            },
        }
        answer = {
            name: value.to_tensor(default_value=_FILLERS.get(name, -1), shape=[None, None])
            for name, value in found.items()
        }
        return {**answer, "num_words": tf.cast(texts.row_lengths(), tf.int32)}

    @graph_function(input_signature=[_WORDS])
    def serve_words(self, words: tf.Tensor) -> Tensors:
        """string [B, W], padded with "" -> labels string, probabilities float32 [B, W]."""
        (words,) = same_rows(words=words)
        ragged = tf.RaggedTensor.from_tensor(words, padding="")
        return {
            name: value.to_tensor(default_value=_FILLERS[name], shape=tf.shape(words))
            for name, value in self._tag(ragged).items()
        }

    @graph_function(input_signature=TOKENS)
    def serve_tokens(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> Tensors:
        """int32 [B, S] -> logits, probabilities float32 [B, S, C]."""
        logits = self.forward(self.token_inputs(input_word_ids, input_mask, input_type_ids))
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}

    def _tag(self, words: tf.RaggedTensor) -> dict[str, tf.RaggedTensor]:
        """Labels and probabilities of words [B, (words)], as in fine-tuning: the first piece of a
        word decides; words beyond the longest sequence get the label O with probability 0.
        """
        tokens = self.text_encoder.tokenize(words.flat_values)  # [words, (pieces)]
        # A word without pieces, such as a control character, becomes the unknown piece, as in
        # training, so that every word has a position.
        unknown = tf.cast(tokens.row_lengths() == 0, tf.int64)
        filler = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(unknown)], self._unknown_id), unknown, validate=False
        )
        tokens = tf.concat([tokens, filler], axis=1)
        logits = self.forward(
            self.text_encoder.pack(words.with_values(tokens).merge_dims(1, 2))
        )  # [B, S, C]
        rows = words.value_rowids()
        before = tf.cumsum(tokens.row_lengths(), exclusive=True)
        # The 0 is for texts without words at the end of the batch, which start after all words.
        firsts = tf.gather(tf.concat([before, [0]], axis=0), words.row_starts())
        places = before - tf.gather(firsts, rows) + 1  # After [CLS].
        fits = places < self.text_encoder.max_seq_length - 1
        at = tf.stack([rows, tf.where(fits, places, 0)], axis=1)  # 0s are overwritten below.
        probabilities = tf.nn.softmax(tf.gather_nd(logits, at))  # [words, C]
        best = tf.gather(tf.constant(self._labels), tf.argmax(probabilities, axis=1))
        highest = tf.reduce_max(probabilities, axis=1)
        return {
            "labels": words.with_values(tf.where(fits, best, OUTSIDE)),
            "probabilities": words.with_values(tf.where(fits, highest, 0.0)),
        }

    def signatures(self) -> Signatures:
        return {
            DEFAULT_SIGNATURE: self.serve_text,
            "words": self.serve_words,
            "tokens": self.serve_tokens,
        }


def expected(loaded: LoadedModel) -> Expected:
    """The answers of fine-tuning to all signatures."""
    sentences = [text.split() for text in TEXTS]
    examples = [
        TaggedExample(str(row), tuple(words), None, "probes", row)
        for row, words in enumerate(sentences)
    ]
    found = finetuned.answer(finetuned.TAGS, loaded, Split("probes", examples))
    tags, of_words, highest = found.predictions
    by_word = {"probabilities": padded(highest, np.float32(0))}
    if finetuned.are_decided(of_words):
        by_word["labels"] = padded([text_array(each) for each in tags], b"")
    words = padded([text_array(sentence) for sentence in sentences], b"")
    spans = [[word.span() for word in re.finditer(r"\S+", text)] for text in TEXTS]
    by_text = {
        "words": words,
        "num_words": np.array(list(map(len, sentences)), np.int32),
        **by_word,
        **places(TEXTS, spans, words.shape[1]),
    }
    logits = found.outputs["logits"][:, : found.inputs["input_mask"].shape[1]]
    by_token = {"logits": logits, "probabilities": tf.nn.softmax(logits).numpy()}
    answers = {DEFAULT_SIGNATURE: by_text, "words": by_word, "tokens": by_token}
    return Expected(answers, {"words": words, **found.inputs})
