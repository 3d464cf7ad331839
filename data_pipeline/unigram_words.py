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

from data_pipeline.word_cache import FlatIds, Words

# A piece scores more than -32, so a sentence of 1,024 characters more than -2^15; float32 has 24
# bits, so a sum is rounded by at most 2^-10; and a word of 31 characters takes at most 32 sums in
# either segmentation.
MAX_SENTENCE_CHARACTERS = 1024
_LOWEST_SCORE = -32.0
_MAX_WORD_CHARACTERS = 31
_MARGIN = 2 * 32 * 2.0**-10
_UNKNOWN_PENALTY = 10.0  # SentencePiece's.
_MAX_CHARACTERS = 256  # Codes; what needs others is left to SentencePiece.
_WORDS_AT_ONCE = 1 << 14
_ROOT = 1
_NO_CODE, _UNKNOWN_CODE = 0, 1
_UNKNOWN = "\0"
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
        and not trainer.byte_fallback
        and not any({_WORD_MARK, " "} & set(piece.piece[1:]) for piece in model.pieces)
        and all(piece.score - _UNKNOWN_PENALTY > _LOWEST_SCORE for piece in model.pieces)
    )


class UnigramWords:
    """Segments many words at once.

    Pieces are kept as a trie: `_next[node, c]` is the node after the character with code c, 0 when
    no piece goes on like this; `_score`, `_id` and `_length` of the node where a piece ends are the
    piece's.

    Args:
      model: a ModelProto for which `supports` is true.
      processor: SentencePiece with that model, for its normalization.
    """

    def __init__(self, model, processor: sentencepiece.SentencePieceProcessor):
        self._normalize = processor.Normalize
        self._keeps_ascii = model.normalizer_spec.name in _KEEP_ASCII
        pieces = list(_scored_pieces(model))
        characters = [piece for piece, _, _ in pieces if len(piece) == 1]
        characters = sorted(characters, key=lambda character: (not character.isascii(), character))
        in_trie = characters[: _MAX_CHARACTERS - 2]
        codes = {character: code for code, character in enumerate(in_trie, start=_UNKNOWN_CODE + 1)}
        # By code point; characters that are no piece are unknown, whatever pieces they are in.
        self._code = np.full(sys.maxunicode + 1, _UNKNOWN_CODE, np.uint8)
        self._code[[ord(character) for character in characters]] = _NO_CODE
        self._code[[ord(character) for character in in_trie]] = list(codes.values())
        self._unknown_id = model.trainer_spec.unk_id
        self._build_trie(pieces, codes)

    def _codes(self, text: str) -> np.ndarray:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        return self._code[points]

    def _build_trie(self, pieces: Sequence[tuple[str, float, int]], codes: dict[str, int]) -> None:
        lowest = min(score for _, score, _ in pieces)
        pieces = [entry for entry in pieces if all(c in codes for c in entry[0])]
        codes = {**codes, _UNKNOWN: _UNKNOWN_CODE}
        pieces.append((_UNKNOWN, lowest - _UNKNOWN_PENALTY, self._unknown_id))
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

    def encode(self, words: Words) -> tuple[FlatIds, np.ndarray]:
        """Ids of words, and bool [W]: whether they are sure; those that are not have none."""
        found = [FlatIds(np.zeros(0, np.int32), np.zeros(0, np.int64))]
        all_sure = [np.zeros(0, bool)]
        for start in range(0, len(words.starts), _WORDS_AT_ONCE):
            some = slice(start, start + _WORDS_AT_ONCE)
            encoded, sure = self._encode(Words(words.content, words.starts[some], words.ends[some]))
            found.append(encoded)
            all_sure.append(sure)
        return FlatIds(*map(np.concatenate, zip(*found))), np.concatenate(all_sure)

    def _encode(self, words: Words) -> tuple[FlatIds, np.ndarray]:
        texts = words.texts()
        sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
        kept = self._are_normal(texts) & (sizes <= _MAX_WORD_CHARACTERS + 1)
        texts = [_WORD_MARK + text if keep else "" for text, keep in zip(texts, kept.tolist())]
        sizes[~kept] = 0
        codes = np.zeros((len(texts), int(sizes.max(initial=0)) + 1), np.uint8)
        codes[np.arange(codes.shape[1]) < sizes[:, None]] = self._codes("".join(texts))
        sizes[np.count_nonzero(codes, axis=1) < sizes] = 0  # A character has no code.
        piece, lead = self._best_segmentations(codes, sizes)
        sizes[lead < _MARGIN] = 0
        return self._trace(piece, sizes), sizes > 0

    def _are_normal(self, words: Sequence[str]) -> np.ndarray:
        """bool [words]: whether SentencePiece's normalization leaves a word as it is."""
        if self._keeps_ascii:
            normal = np.array([word.isascii() and word.isprintable() for word in words], bool)
        else:
            normal = np.zeros(len(words), bool)
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
        shape = (width, count)  # Transposed, and flat below: [end, word] is end * count + word.
        best, second = np.full(shape, -np.inf), np.full(shape, -np.inf)
        piece = np.zeros(shape, np.int32)
        best[0] = 0.0
        flat_best, flat_second, flat_piece = best.reshape(-1), second.reshape(-1), piece.reshape(-1)
        flat_codes = np.ascontiguousarray(codes.T).reshape(-1)
        flat_next = self._next.reshape(-1)
        for start in range(width - 1):
            words = np.flatnonzero(sizes > start)
            nodes = np.full(len(words), _ROOT, np.int64)
            for end in range(start + 1, width):
                nodes *= _MAX_CHARACTERS
                nodes += flat_codes[words + (end - 1) * count]
                nodes = flat_next[nodes]
                alive = np.flatnonzero(nodes)
                if not len(alive):
                    break
                words, nodes = words[alive], nodes[alive].astype(np.int64)
                scores = self._score[nodes]
                is_piece = np.flatnonzero(scores == scores)
                if not len(is_piece):
                    continue
                at_start = words[is_piece] + start * count
                at_end = at_start + (end - start) * count
                scores = scores[is_piece]
                totals = flat_best[at_start] + scores
                old = flat_best[at_end]
                runner_up = np.maximum(flat_second[at_end], np.minimum(totals, old))
                flat_second[at_end] = np.maximum(runner_up, flat_second[at_start] + scores)
                better = totals > old
                flat_best[at_end] = np.where(better, totals, old)
                flat_piece[at_end[better]] = nodes[is_piece[better]]
        everyone = np.arange(count)
        with np.errstate(invalid="ignore"):
            lead = best[sizes, everyone] - second[sizes, everyone]
        return piece.T, np.nan_to_num(lead, nan=-np.inf, posinf=np.inf)

    def _trace(self, piece: np.ndarray, sizes: np.ndarray) -> FlatIds:
        """Ids along the best segmentations, one word after the other, and their numbers."""
        found = []  # Last pieces first.
        ends = sizes.copy()
        while ends.any():
            nodes = piece[np.arange(len(ends)), ends]
            found.append(nodes)
            ends -= self._length[nodes]
        nodes = np.stack(found[::-1], axis=1) if found else np.zeros((len(sizes), 0), np.int32)
        ids, is_piece = self._id[nodes], nodes > 0
        # SentencePiece joins unknown pieces that are neighbours.
        unknown = is_piece & (ids == self._unknown_id)
        is_piece[:, 1:] &= ~(unknown[:, 1:] & unknown[:, :-1])
        return FlatIds(ids[is_piece], np.count_nonzero(is_piece, axis=1))


def _scored_pieces(model) -> Iterator[tuple[str, float, int]]:
    """Pieces that stand for text, with score and id."""
    kinds = type(model.pieces[0])
    normal = [piece.score for piece in model.pieces if piece.type == kinds.NORMAL]
    highest = max([0.0, *normal])
    for i, piece in enumerate(model.pieces):
        if piece.type == kinds.NORMAL:
            yield piece.piece, piece.score, i
        elif piece.type == kinds.USER_DEFINED:  # SentencePiece scores them so as to win.
            yield piece.piece, len(piece.piece.encode("utf-8")) * highest - 0.1, i
