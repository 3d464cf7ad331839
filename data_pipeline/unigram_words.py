"""Ids of single words under a SentencePiece unigram model, when they do not depend on neighbours.

The model chooses the segmentation of a sentence with the highest sum of scores. Where no piece
holds a space, that is the best segmentation of each word; only rounding could tell otherwise, as
SentencePiece adds up float32 scores from the beginning of the sentence. So ids are given only for
words whose best segmentation leads the second best by more than all rounding can make up.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np
import sentencepiece

from data_pipeline.word_cache import FlatIds

# In a sentence of 8,192 characters sums stay below 2^17 in size, a rounding below 2^-8 (float32 has
# 24 bits); with up to 2 * 32 roundings in a word, mostly of half that and either sign, 2^-3 is ample.
MAX_SENTENCE_CHARACTERS = 8192
_MAX_WORD_CHARACTERS = 32
_MAX_CHARACTERS = 128  # Others are left to SentencePiece.
_WORDS_AT_ONCE = 1 << 14
_ROOT = 1
_MARGIN = 0.125
_WORD_MARK = "\u2581"
_KEEP_ASCII = ("nmt_nfkc", "nfkc", "identity")  # Normalizations that leave printable ASCII alone.


def supports(model) -> bool:
    """Whether words of this ModelProto stand alone: a unigram model, no piece with a space."""
    from sentencepiece import sentencepiece_model_pb2

    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    return (
        trainer.model_type == sentencepiece_model_pb2.TrainerSpec.UNIGRAM
        and not trainer.treat_whitespace_as_suffix
        and normalizer.add_dummy_prefix
        and normalizer.remove_extra_whitespaces
        and normalizer.escape_whitespaces
        and not any(_WORD_MARK in piece.piece[1:] for piece in model.pieces)
    )


class UnigramWords:
    """Segments many words at once.

    Pieces are kept as a trie: `_next[node, c]` is the node after the character with code c, 0 when
    no piece goes on like this; `_score`, `_id` and `_length` of a node that ends a piece are the piece's.

    Args:
      model: a ModelProto for which `supports` is true.
      processor: SentencePiece with that model, for its normalization.
    """

    def __init__(self, model, processor: sentencepiece.SentencePieceProcessor):
        self._normalize = processor.Normalize
        self._keeps_ascii = model.normalizer_spec.name in _KEEP_ASCII
        pieces = list(_scored_pieces(model))
        # A character that is no piece itself stands for an unknown piece in SentencePiece.
        characters = [piece for piece, _, _ in pieces if len(piece) == 1]
        characters = sorted(characters, key=lambda character: (not character.isascii(), character))
        self._code = np.zeros(sys.maxunicode + 1, np.uint8)  # By code point; 0: not in the trie.
        codes = {c: i for i, c in enumerate(characters[: _MAX_CHARACTERS - 1], start=1)}
        self._code[[ord(character) for character in codes]] = list(codes.values())
        self._build_trie(pieces, codes)

    def _codes(self, text: str) -> np.ndarray:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        return self._code[points]

    def _build_trie(
        self, pieces: Sequence[tuple[str, float, int]], codes: dict[str, int]
    ) -> None:
        pieces = [entry for entry in pieces if all(c in codes for c in entry[0])]
        nodes: dict[int, int] = {}  # _MAX_CHARACTERS * node + code -> next node
        ends = []
        for piece, _, _ in pieces:
            node = _ROOT
            for character in piece:
                edge = _MAX_CHARACTERS * node + codes[character]
                node = nodes.setdefault(edge, len(nodes) + _ROOT + 1)
            ends.append(node)
        size = len(nodes) + _ROOT + 1
        self._next = np.zeros((size, _MAX_CHARACTERS), np.int32)
        self._next.reshape(-1)[list(nodes)] = list(nodes.values())
        self._score = np.full(size, np.nan)
        self._id = np.zeros(size, np.int32)
        self._score[ends] = [score for _, score, _ in pieces]
        self._id[ends] = [i for _, _, i in pieces]
        self._length = np.zeros(size, np.int64)
        self._length[ends] = [len(piece) for piece, _, _ in pieces]

    def encode(self, words: Sequence[str]) -> tuple[FlatIds, np.ndarray]:
        """Ids of words without spaces, and bool [words]: whether they are sure."""
        chunks = [
            self._encode_chunk(words[start : start + _WORDS_AT_ONCE])
            for start in range(0, len(words), _WORDS_AT_ONCE)
        ]
        ids, lengths, sure = (np.concatenate(columns) for columns in zip(*chunks))
        return FlatIds(ids, lengths), sure

    def _encode_chunk(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        kept = np.array([len(word) <= _MAX_WORD_CHARACTERS for word in words])
        texts = [_WORD_MARK + word if keep else "" for word, keep in zip(words, kept)]
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        width = int(sizes.max()) + 1
        codes = np.zeros((len(words), width), np.uint8)
        codes[np.arange(width) < sizes[:, None]] = self._codes("".join(texts))
        has_codes = np.count_nonzero(codes, axis=1) == sizes
        kept &= has_codes & self._are_normal(words)
        piece, gap = self._best_segmentations(codes, np.where(kept, sizes, 0))
        sure = kept & (gap >= _MARGIN)
        ids, lengths = self._trace(piece, np.where(sure, sizes, 0))
        return ids, lengths, sure

    def _are_normal(self, words: Sequence[str]) -> np.ndarray:
        """bool [words]: whether SentencePiece's normalization leaves a word as it is."""
        normal = np.array(
            [self._keeps_ascii and word.isascii() and word.isprintable() for word in words]
        )
        others = np.flatnonzero(~normal).tolist()
        for i, text in zip(others, self._normalize([words[i] for i in others])):
            normal[i] = text == _WORD_MARK + words[i]
        return normal

    def _best_segmentations(
        self, codes: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Viterbi's algorithm with the two best sums of scores, for all words side by side.

        Args:
          codes: uint8 [words, width] characters.
          sizes: int64 [words], 0 for words to leave out.

        Returns:
          int32 [words, width]: node of the last piece of the best segmentation of the first n
          characters; float64 [words]: lead of the best segmentation of the whole word.
        """
        count, width = codes.shape
        best = np.full((width, count), -np.inf)  # Transposed: a step takes one row.
        second = np.full((width, count), -np.inf)
        piece = np.zeros((width, count), np.int32)
        best[0] = 0.0
        columns = np.ascontiguousarray(codes.T)
        for start in range(width - 1):
            rows = np.flatnonzero(sizes > start)
            nodes = np.full(len(rows), _ROOT, np.int32)
            for end in range(start + 1, width):
                nodes = self._next[nodes, columns[end - 1, rows]]
                alive = np.flatnonzero(nodes)
                if not len(alive):
                    break
                rows, nodes = rows[alive], nodes[alive]
                scores = self._score[nodes]
                is_piece = np.flatnonzero(scores == scores)
                if not len(is_piece):
                    continue
                words, scores = rows[is_piece], scores[is_piece]
                totals = best[start, words] + scores
                old = best[end, words]
                runner_up = np.maximum(second[end, words], np.minimum(totals, old))
                second[end, words] = np.maximum(runner_up, second[start, words] + scores)
                better = totals > old
                best[end, words] = np.where(better, totals, old)
                piece[end, words] = np.where(better, nodes[is_piece], piece[end, words])
        everyone = np.arange(count)
        with np.errstate(invalid="ignore"):
            gap = best[sizes, everyone] - second[sizes, everyone]
        return piece.T, gap

    def _trace(self, piece: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ids along the best segmentations, one word after the other, and their numbers."""
        found = []  # Last pieces first.
        ends = sizes.copy()
        while ends.any():
            nodes = piece[np.arange(len(ends)), ends]
            found.append(nodes)
            ends -= self._length[nodes]
        nodes = np.stack(found[::-1], axis=1) if found else np.zeros((len(sizes), 0), np.int32)
        return self._id[nodes[nodes > 0]], np.count_nonzero(nodes, axis=1)


def _scored_pieces(model) -> Iterator[tuple[str, float, int]]:
    """Pieces that stand for text, with score and id."""
    kinds = type(model.pieces[0])
    normal = [piece.score for piece in model.pieces if piece.type == kinds.NORMAL]
    highest = max(normal, default=0.0)
    for i, piece in enumerate(model.pieces):
        if piece.type == kinds.NORMAL:
            yield piece.piece, piece.score, i
        elif piece.type == kinds.USER_DEFINED:  # SentencePiece scores them so as to win.
            yield piece.piece, len(piece.piece.encode("utf-8")) * highest - 0.1, i
