"""Models that take text, in two lines of code: filling of masks, vectors of sentences.

They need tensorflow_text. For serving, `export` makes SavedModels that do the same.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import formats, sentence_transformers
from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer, AlbertSentenceEncoder
from albert_tf.pretrained.loading import from_preset, locate, preset_vocabulary
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.sentencepiece import WORD_MARK
from data_pipeline.tokenizers.text_graph import TextEncoder

DEFAULT = "albert-small-en"
_BATCH_TOKENS = 64 * 128  # Tokens of a batch, padding included.
# Models run as graphs: for a short text, calls of single operations would take most of the time.
_TOKENS = [tf.RaggedTensorSpec([None, None], tf.int32)]


class MaskFiller:
    """A function from texts with "[MASK]" in them to the most probable pieces for each mask.

    >>> MaskFiller()("The cat sat on the [MASK].")
    [[('table', 0.43), ...]]
    """

    def __init__(self, name_or_path: str = DEFAULT, max_seq_length: int | None = None) -> None:
        """
        Args:
          name_or_path: weights with the masked LM head, see `locate`.
          max_seq_length: longer texts are cut, with a warning; None: the length that the model was
            trained on, or the number of its positions.

        Raises:
          UserError: see `locate`; or the weights lack that head.
        """
        source = locate(name_or_path)
        self.model = AlbertPretrainer(source.config())
        # The pooler and the sentence-order head may be missing: filling masks needs neither.
        source.load(self.model, formats.Allowed(formats.WITHOUT_PAIRS, formats.NOT_ENCODER))
        self._tokenizer = load_tokenizer(preset_vocabulary(name_or_path))
        graph, length = graph_tokenizer(self._tokenizer), _length(source, max_seq_length)
        self._encode = TextEncoder(graph, self._tokenizer, length, read_masks=True)
        self._cut = _Cut(length)
        self._probabilities = tf.function(self._compute, _TOKENS, autograph=False)

    def _compute(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """int32 [1, (tokens)] -> float [M, V], the probabilities of the pieces at each mask."""
        inputs = self._encode.pack(tokens)
        positions = tf.where(inputs["input_word_ids"] == self._encode.mask_id)[:, 1]
        inputs["masked_lm_positions"] = tf.cast(positions, tf.int32)[None]
        return tf.nn.softmax(self.model(inputs)["masked_lm_logits"][0])

    def __call__(self, text: str, top_k: int = 5) -> list[list[tuple[str, float]]]:
        """For each mask of the text, `top_k` pairs of a piece and its probability, best first.

        A mask in the part of the text that is cut off has no answer, which gives a warning.
        """
        if not isinstance(text, str) or top_k < 1:
            raise UserError(
                f"MaskFiller takes a string and a top_k above 0; received {text!r}, {top_k}."
            )
        tokens = self._encode.tokenize(tf.constant([text]))
        self._cut.note(tokens)
        probabilities = self._probabilities(tokens)
        num_masks = int(tf.math.count_nonzero(tokens.flat_values == self._encode.mask_id))
        if num_masks > len(probabilities):
            warnings.warn(
                f"{num_masks - len(probabilities)} of {num_masks} masks lie beyond the first "
                f"{self._encode.max_seq_length} tokens, and have no answer. Shorten the text "
                "before them.",
                stacklevel=2,
            )
        best = tf.math.top_k(probabilities, min(top_k, probabilities.shape[1]))
        return [
            [(self._word(piece), float(value)) for piece, value in zip(pieces, values)]
            for pieces, values in zip(best.indices.numpy(), best.values.numpy())
        ]

    def _word(self, piece_id: int) -> str:
        """The piece as it stands in a text: "▁floor" -> "floor"; "" for an id without a piece."""
        pieces = self._tokenizer.pieces
        return pieces[piece_id].replace(WORD_MARK, "") if piece_id < len(pieces) else ""


class SentenceEmbedder:
    """A function from texts to vectors: the mean of the last layer over a text's tokens, or, for a
    folder of sentence-transformers, the pooling of its modules.json, as `pooling` tells.
    """

    def __init__(self, name_or_path: str = DEFAULT, max_seq_length: int | None = None) -> None:
        """
        Args:
          name_or_path: weights of any model, see `from_preset`.
          max_seq_length: longer texts are cut, with a warning; None: the length that the model was
            trained on, or the number of its positions.

        Raises:
          UserError: see `from_preset`; or the vectors of a sentence-transformers folder need a
            step that is not supported here.
        """
        source = locate(name_or_path)
        self.pooling = sentence_transformers.read_pooling(source.path)
        if self.pooling.others:
            raise UserError(
                f"{source.path}: its vectors need {', '.join(self.pooling.others)}, and only "
                "mean and first-token pooling of the text itself are supported here. For "
                "the means of its encoder use AlbertSentenceEncoder.from_preset."
            )
        self.model = from_preset(name_or_path, AlbertSentenceEncoder)
        tokenizer = load_tokenizer(preset_vocabulary(name_or_path))
        length = _length(source, max_seq_length)
        self._encode = TextEncoder(graph_tokenizer(tokenizer), tokenizer, length)
        self._cut = _Cut(length)
        self._vectors = tf.function(self._compute, _TOKENS, autograph=False)

    def _compute(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """int32 [B, (tokens)] -> float [B, H]."""
        inputs = self._encode.pack(tokens)
        if self.pooling.mode == "mean":
            return self.model(inputs)["mean_output"]
        first = tf.zeros([tokens.nrows(), 1], tf.int32)
        return self.model.encoder.hidden_at(inputs, first)[:, 0]

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [B, H], in the order of the texts; [H] for a single string."""
        if isinstance(texts, str):
            return self([texts])[0]
        texts = list(texts)
        if others := [each for each in texts if not isinstance(each, str)]:
            raise UserError(f"SentenceEmbedder takes strings; received {others[0]!r}.")
        vectors = np.zeros([len(texts), self.model.config.hidden_size], np.float32)
        if not len(texts):
            return vectors
        tokens = self._encode.tokenize(tf.constant(texts))
        self._cut.note(tokens)
        lengths = tokens.row_lengths().numpy()
        # Texts of similar lengths form a batch, since a batch is padded to its longest text. The
        # shorter they are, the more go into a batch.
        order = np.argsort(-lengths, kind="stable")
        while len(order):
            longest = min(lengths[order[0]] + 2, self._encode.max_seq_length)  # [CLS], [SEP].
            rows, order = np.split(order, [max(1, _BATCH_TOKENS // longest)])
            vectors[rows] = self._vectors(tf.gather(tokens, rows)).numpy()
        return _unit(vectors) if self.pooling.normalized else vectors

    encode = __call__  # As sentence-transformers names it.

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        """float32 [B], the cosine of the vectors of each pair, -1 to 1; UserError if `first` and
        `second` have different lengths.
        """
        first, second = ([each] if isinstance(each, str) else each for each in (first, second))
        if len(first) != len(second):
            raise UserError(
                f"similarity needs equal numbers of texts; received {len(first)} and {len(second)}."
            )
        left, right = (_unit(self(texts)) for texts in (first, second))
        return (left * right).sum(axis=1)


def _length(source: formats.Source, given: int | None) -> int:
    """The given number of tokens; by default, as in exports, the length that the model was trained
    on, or the number of its positions if its folder does not store that length.
    """
    positions = source.config().max_position_embeddings
    if given is not None and not 3 <= given <= positions:
        raise UserError(
            f"--max_seq_length={given}: expected 3 to {positions}, the positions of {source.path}."
        )
    return given or source.metadata().get("max_seq_length", positions)


class _Cut:
    """A warning that texts are cut, given only once."""

    def __init__(self, max_seq_length: int) -> None:
        self._max_seq_length = max_seq_length
        self._is_said = False

    def note(self, tokens: tf.RaggedTensor) -> None:
        """tokens: int32 [B, (tokens)], before they are cut, without [CLS] and [SEP]."""
        longest = int(tf.reduce_max(tokens.row_lengths())) + 2  # [CLS] and [SEP].
        if longest > self._max_seq_length and not self._is_said:
            self._is_said = True
            # The line of the user's call, not one in this file.
            files = (frame.filename for frame in inspect.stack())
            level = next(n for n, name in enumerate(files, 1) if name != __file__)
            warnings.warn(
                f"a text of {longest} tokens is cut to {self._max_seq_length}, the model's length "
                "or max_seq_length; further long texts are cut without a warning.",
                stacklevel=level,
            )


def _unit(vectors: np.ndarray) -> np.ndarray:
    """[B, H] -> the same directions with length 1; zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, 1e-12)
