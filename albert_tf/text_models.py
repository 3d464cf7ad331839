"""Models from text to answers in two lines: masks that are filled, sentences as vectors.

They need tensorflow_text. For serving, `export` makes SavedModels that do the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import formats, sentence_transformers
from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer, AlbertSentenceEncoder
from albert_tf.pretrained import from_preset, locate, preset_vocabulary
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.sentencepiece import WORD_MARK
from data_pipeline.tokenizers.text_graph import TextEncoder

DEFAULT = "albert-small-en"
_BATCH_SIZE = 64


class MaskFiller:
    """A function from texts with "[MASK]" in them to the most probable pieces for each mask.

    >>> MaskFiller()("The cat sat on the [MASK].")
    [[('floor', 0.12), ...]]
    """

    def __init__(self, name_or_path: str = DEFAULT, max_seq_length: int = 128) -> None:
        """Args:
        name_or_path: weights with the head of masked words, see `locate`.
        max_seq_length: longer texts are cut, with their masks.

        Raises:
          UserError: see `locate`; or the weights lack that head.
        """
        source = locate(name_or_path)
        self.model = AlbertPretrainer(source.config())
        formats.load_weights(self.model, source.path, ["^sentence_order/"], formats.NOT_ENCODER)
        self._tokenizer = load_tokenizer(preset_vocabulary(name_or_path))
        graph = graph_tokenizer(self._tokenizer)
        self._encode = TextEncoder(graph, self._tokenizer, max_seq_length, read_masks=True)

    def __call__(self, text: str, top_k: int = 5) -> list[list[tuple[str, float]]]:
        """For each mask of the text `top_k` pairs of a piece and its probability, best first."""
        inputs = self._encode(tf.constant([text]))
        positions = tf.where(inputs["input_word_ids"] == self._encode.mask_id)[:, 1]  # [M]
        if not len(positions):
            return []
        inputs["masked_lm_positions"] = tf.cast(positions, tf.int32)[None]
        logits = self.model(inputs)["masked_lm_logits"][0]  # [M, V]
        best = tf.math.top_k(tf.nn.softmax(logits), top_k)
        return [
            [(self._word(piece), float(value)) for piece, value in zip(pieces, values)]
            for pieces, values in zip(best.indices.numpy(), best.values.numpy())
        ]

    def _word(self, piece_id: int) -> str:
        """The piece as it stands in a text: "▁floor" -> "floor"."""
        return self._tokenizer.pieces[piece_id].replace(WORD_MARK, "")


class SentenceEmbedder:
    """A function from texts to vectors: the mean of the last layer over a text's tokens."""

    def __init__(self, name_or_path: str = DEFAULT, max_seq_length: int = 128) -> None:
        """Args:
        name_or_path: weights of any model, see `from_preset`.
        max_seq_length: longer texts are cut.

        Raises:
          UserError: see `from_preset`; or the folder is one of sentence-transformers, and its
            vectors are not such means.
        """
        source = locate(name_or_path)
        steps = sentence_transformers.other_steps(source.path)
        if steps:
            raise UserError(
                f"{source.path}: {sentence_transformers.MODULES_FILE} makes vectors by "
                f"{', '.join(steps)}, and only means are computed here. Those of its encoder: "
                "AlbertSentenceEncoder.from_preset."
            )
        self.model = from_preset(name_or_path, AlbertSentenceEncoder)
        tokenizer = load_tokenizer(preset_vocabulary(name_or_path))
        self._encode = TextEncoder(graph_tokenizer(tokenizer), tokenizer, max_seq_length)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [B, H]."""
        rows = [
            self.model(self._encode(tf.constant(texts[start : start + _BATCH_SIZE])))["mean_output"]
            for start in range(0, len(texts), _BATCH_SIZE)
        ]
        return tf.concat(rows, axis=0).numpy() if rows else np.zeros([0, self._size], np.float32)

    @property
    def _size(self) -> int:
        return self.model.config.hidden_size

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        """float32 [B], the cosine of the vectors of each pair, -1 to 1."""
        left, right = (_unit(self(texts)) for texts in (first, second))
        return (left * right).sum(axis=1)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """[B, H] -> the same directions with length 1; zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, 1e-12)
