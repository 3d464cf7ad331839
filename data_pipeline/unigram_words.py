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
_MAX_CODES = 256  # Of characters; words with others are left to SentencePiece.
_WORDS_AT_ONCE = 1 << 13
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

    Pieces are kept as a trie. Nodes with children come first; `_next[width * node + c]` is the node
    after the character with code c, 0 when no piece goes on like this. `_score` (NaN without a
    piece), `_id` and `_length` of a node are those of the piece that ends there.

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
        in_trie = characters[: _MAX_CODES - 2]
        codes = {character: code for code, character in enumerate(in_trie, start=_UNKNOWN_CODE + 1)}
        # By code point; characters that are no piece are unknown, whatever pieces they are in.
        self._code = np.full(sys.maxunicode + 1, _UNKNOWN_CODE, np.uint8)
        self._code[[ord(character) for character in characters]] = _NO_CODE
        self._code[[ord(character) for character in in_trie]] = list(codes.values())
        self._ascii_code = self._code[:256].copy()
        if self._keeps_ascii:
            self._ascii_code[[*range(ord(" ")), *range(0x7F, 0x100)]] = _NO_CODE
        else:
            self._ascii_code[:] = _NO_CODE
        self._mark_code = self._code[ord(_WORD_MARK)]
        self._unknown_id = model.trainer_spec.unk_id
        lowest = min(score for _, score, _ in pieces)
        unknown = (_UNKNOWN, lowest - _UNKNOWN_PENALTY, self._unknown_id)
        self._build_trie([*pieces, unknown], {**codes, _UNKNOWN: _UNKNOWN_CODE})

    def _build_trie(self, pieces: Sequence[tuple[str, float, int]], codes: dict[str, int]) -> None:
        pieces = [entry for entry in pieces if all(c in codes for c in entry[0])]
        width = len(codes) + 1
        edges: dict[int, int] = {}  # width * node + code -> next node, in the order of creation
        ends = []
        for piece, _, _ in pieces:
            node = _ROOT
            for character in piece:
                node = edges.setdefault(width * node + codes[character], len(edges) + _ROOT + 1)
            ends.append(node)
        keys = np.array(list(edges))
        has_children = np.zeros(len(edges) + _ROOT + 1, bool)
        has_children[[0, *(keys // width)]] = True
        order = np.argsort(~has_children, kind="stable")
        number = np.empty_like(order)  # Of each node, when those with children come first.
        number[order] = np.arange(len(order))
        self._width, self._num_inner = width, int(np.count_nonzero(has_children))
        self._root = int(number[_ROOT])
        self._next = np.zeros(self._num_inner * width, np.int32)
        self._next[width * number[keys // width] + keys % width] = number[list(edges.values())]
        self._score = np.full(len(order), np.nan)
        self._id, self._length = np.zeros(len(order), np.int32), np.zeros(len(order), np.int64)
        ends = number[ends]
        self._score[ends] = [score for _, score, _ in pieces]
        self._id[ends] = [i for _, _, i in pieces]
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
        codes, sizes = self._codes(words)
        sizes[np.count_nonzero(codes, axis=1) < sizes] = 0  # A character has no code.
        piece, lead = self._best_segmentations(codes, sizes)
        sizes[lead < _MARGIN] = 0
        return self._trace(piece, sizes), sizes > 0

    def _codes(self, words: Words) -> tuple[np.ndarray, np.ndarray]:
        """uint8 [W, width]: the word mark and the characters of each word, then zeros; int64 [W]:
        their number, 0 for words that are too long or that normalization changes."""
        sizes = words.ends - words.starts + 1  # If it is ASCII.
        sizes[sizes > 4 * _MAX_WORD_CHARACTERS] = 0
        width = min(int(sizes.max(initial=0)), _MAX_WORD_CHARACTERS + 1) + 1
        data = np.frombuffer(words.content, np.uint8)
        place = np.arange(width - 1)
        is_letter = place < sizes[:, None] - 1
        source = np.minimum(words.starts[:, None] + place, len(data) - 1)
        codes = np.zeros((len(sizes), width), np.uint8)
        codes[:, 0] = self._mark_code
        codes[:, 1:] = np.where(is_letter, self._ascii_code[data[source]], _NO_CODE)
        done = (np.count_nonzero(codes, axis=1) == sizes) & (sizes < width)
        others = np.flatnonzero(~done)
        texts = Words(words.content, words.starts[others], words.ends[others]).texts()
        normal = self._normalize(texts) if texts else []
        for i, text, expected in zip(others.tolist(), texts, normal):
            codes[i], sizes[i] = _NO_CODE, 0
            if len(text) < width - 1 and expected == _WORD_MARK + text:
                sizes[i] = len(expected)
                points = np.frombuffer(expected.encode("utf-32-le"), np.uint32)
                codes[i, : len(expected)] = self._code[points]
        return codes, sizes

    def _matches(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All pieces in all words: flat position of the first character, length, node."""
        flat = codes.reshape(-1)  # Every row ends with a zero, which no piece goes beyond.
        positions = np.flatnonzero(flat)
        nodes = np.full(len(positions), self._root, np.int32)
        starts, lengths, ends = [], [], []
        length = 0
        while len(positions):
            nodes = self._next[nodes * self._width + flat[positions + length]]
            length += 1
            alive = np.flatnonzero(nodes)
            positions, nodes = positions[alive], nodes[alive]
            is_piece = np.flatnonzero(~np.isnan(self._score[nodes]))
            starts.append(positions[is_piece])
            ends.append(nodes[is_piece])
            lengths.append(np.full(len(is_piece), length))
            inner = np.flatnonzero(nodes < self._num_inner)
            positions, nodes = positions[inner], nodes[inner]
        return tuple(
            np.concatenate([*parts, np.zeros(0, np.int64)]).astype(np.int64)
            for parts in (starts, lengths, ends)
        )

    def _best_segmentations(
        self, codes: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Viterbi's algorithm with the two best sums of scores, for all words side by side.

        Args:
          codes: uint8 [W, width] characters.
          sizes: int64 [W], 0 for words to leave out.

        Returns:
          int32 [W, width]: node of the last piece of the best segmentation of the first n
          characters; float64 [W]: lead of the best segmentation of the whole word.
        """
        codes[sizes == 0] = _NO_CODE
        count, width = codes.shape
        best, second = np.full((2, count * width), -np.inf)
        piece = np.zeros(count * width, np.int32)
        best[::width] = 0.0
        starts, lengths, nodes = self._matches(codes)
        column = (starts % width).astype(np.uint8)
        order = np.argsort(column, kind="stable")
        bounds = np.searchsorted(column[order], np.arange(width + 1))
        starts, ends, nodes = starts[order], (starts + lengths)[order], nodes[order]
        scores = self._score[nodes]
        for first, last in zip(bounds.tolist(), bounds[1:].tolist()):
            # All pieces that start at this character of a word: they end at different ones.
            start, end, node = starts[first:last], ends[first:last], nodes[first:last]
            score = scores[first:last]
            totals, old = best[start] + score, best[end]
            runner_up = np.maximum(second[end], np.minimum(totals, old))
            second[end] = np.maximum(runner_up, second[start] + score)
            better = np.flatnonzero(totals > old)
            best[end[better]] = totals[better]
            piece[end[better]] = node[better]
        whole = np.arange(count) * width + sizes
        with np.errstate(invalid="ignore"):
            lead = best[whole] - second[whole]
        return piece.reshape(count, width), np.nan_to_num(lead, nan=-np.inf, posinf=np.inf)

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
