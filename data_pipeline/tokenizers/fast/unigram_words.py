"""Ids of single words under a SentencePiece unigram model, if they do not depend on neighbors.

The model chooses the segmentation of a sentence with the highest sum of scores. If no piece
contains a space, this is the best segmentation of each word. Only rounding could change it, as
SentencePiece sums float32 scores from the beginning of the sentence. So ids are returned only for
words whose best segmentation leads the second best by more than the largest rounding error.

An example with three pieces and two words, scores in brackets:

    pieces      ▁ab (-2.5), ▁a (-1.0), b (-2.0)
    word "ab"   ▁ab = -2.5 leads ▁a b = -3.0 by 0.5: sure, one id, that of ▁ab
    word "a"    ▁a is the only segmentation: sure, the id of ▁a

With a score of -1.5 for b, both segmentations of "ab" would have -2.5, and SentencePiece's choice
would depend on the sums before it: "ab" is not sure, and its sentence is encoded as a whole.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from data_pipeline.tokenizers.base import FlatIds
from data_pipeline.tokenizers.fast.word_cache import Words
from data_pipeline.tokenizers.sentencepiece import WORD_MARK

# The margin of a sure word: a piece scores more than -32, so a sentence of 1,024 characters scores
# more than -2^15. float32 has 24 bits, so a sum near 2^15 is rounded by at most 2^-10. A word of 31
# characters takes at most 32 additions in either segmentation, so rounding changes their difference
# by at most 2 * 32 * 2^-10 = 1/16.
MAX_SENTENCE_CHARACTERS = 1024
_LOWEST_SCORE = -32.0
_MAX_WORD_CHARACTERS = 31
_MARGIN = 2 * 32 * 2.0**-10
_UNKNOWN_PENALTY = 10.0  # As in SentencePiece.
# Codes are bytes, so that NumPy can sort rows of bytes as strings, and `_next` stays small. Words
# with other characters are left to SentencePiece.
_MAX_CODES = 256
_WORDS_AT_ONCE = 1 << 13  # Bounds the arrays of all pieces in all words.
_ROOT = 1
_NO_CODE, _UNKNOWN_CODE, _FIRST_CODE = 0, 1, 2
_KEEP_ASCII = ("nmt_nfkc", "nfkc", "identity")  # Normalizations that leave printable ASCII alone.


def supports(model: Any) -> bool:
    """Whether words can be encoded separately with a ModelProto."""
    from sentencepiece import sentencepiece_model_pb2

    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    # BPE merges pairs in a fixed order, not by sums of scores. A piece with a space or a word mark
    # inside spans two words. `_codes` puts the mark only at the beginning of words. Byte fallback
    # makes pieces of unknown bytes, which have no node. Scores below _LOWEST_SCORE would break the
    # bound on rounding above.
    return (
        trainer.model_type == sentencepiece_model_pb2.TrainerSpec.UNIGRAM
        and not trainer.treat_whitespace_as_suffix
        and normalizer.add_dummy_prefix
        and normalizer.remove_extra_whitespaces
        and normalizer.escape_whitespaces
        and not trainer.byte_fallback
        and not any(
            " " in piece.piece or piece.piece.rfind(WORD_MARK) > 0 for piece in model.pieces
        )
        and min(piece.score for piece in model.pieces) - _UNKNOWN_PENALTY > _LOWEST_SCORE
    )


class _Pieces(NamedTuple):
    """Pieces as parallel arrays: texts, float64 scores, int64 ids."""

    texts: list[str]
    scores: np.ndarray
    ids: np.ndarray


class UnigramWords:
    """Ids of many words at once, by a trie of the pieces and the Viterbi algorithm in NumPy.

    Characters have small codes, say ▁ 2, a 3, b 4; 1: unknown characters, 0: those without a code.
    `_next[width * node + c]` is the node after the character with code c, 0 if no piece continues
    this way. `_score` (NaN if there is no piece), `_id` and `_length` of a node are those of the
    piece that ends there.

        pieces ▁a, ▁ab, b   root 1 -▁-> 2 -a-> 3 (▁a) -b-> 4 (▁ab);  root 1 -b-> 5 (b)

    Args:
      model: a ModelProto for which `supports` is true.
      processor: SentencePiece with that model, for its normalization.
    """

    def __init__(self, model: Any, processor: sentencepiece.SentencePieceProcessor) -> None:
        self._normalize = processor.Normalize
        pieces = _scored_pieces(model)
        characters = [text for text in pieces.texts if len(text) == 1]
        # ASCII comes first, in case there are more characters than codes.
        characters = sorted(characters, key=lambda character: (not character.isascii(), character))
        # By code point. Characters in no piece are unknown. A character that occurs only in longer
        # pieces gets no code, as it is unknown in some words and part of a piece in others.
        self._code = np.full(sys.maxunicode + 1, _UNKNOWN_CODE, np.uint8)
        self._code[[ord(character) for character in set("".join(pieces.texts))]] = _NO_CODE
        points = np.array([ord(character) for character in characters], np.int64)
        points = points[: _MAX_CODES - _FIRST_CODE]
        self._code[points] = _FIRST_CODE + np.arange(len(points))
        # Words of ASCII bytes need no normalization if the model's rule keeps ASCII unchanged;
        # bytes from 0x80 on belong to other characters.
        self._ascii_code = self._code[:256].copy()
        if model.normalizer_spec.name in _KEEP_ASCII:
            self._ascii_code[[*range(ord(" ")), *range(0x7F, 0x100)]] = _NO_CODE
        else:
            self._ascii_code[:] = _NO_CODE
        self._mark_code = self._code[ord(WORD_MARK)]
        self._unknown_id = model.trainer_spec.unk_id
        self._build_trie(pieces)

    def _build_trie(self, pieces: _Pieces) -> None:
        """Fills `_next`, `_score`, `_id` and `_length`.

        In sorted order, a piece shares the nodes of its common prefix with the previous piece; its
        other letters are new nodes, numbered from 2:

            letters   new nodes   nodes
            ▁ a       2 3 .       2 3 .
            ▁ a b     . . 4       2 3 4   2 and 3 come from the row above, by maximum
            b         5 . .       5 . .   numbers after a piece's end are meaningless

        Numbers grow from row to row, so the maximum over the rows above is the latest number.
        """
        letters = self._letters(pieces.texts)
        # Row 0 is the unknown character, treated as a piece with SentencePiece's penalty.
        letters = np.insert(letters, 0, _NO_CODE, axis=0)
        letters[0, 0] = _UNKNOWN_CODE
        scores = np.insert(pieces.scores, 0, pieces.scores.min() - _UNKNOWN_PENALTY)
        ids = np.insert(pieces.ids, 0, self._unknown_id)
        usable = np.flatnonzero(letters[:, 0])
        # Rows are sorted as NumPy byte strings.
        order = usable[np.argsort(letters[usable].view(f"S{letters.shape[1]}")[:, 0])]
        letters, is_letter = letters[order], letters[order] > 0
        is_same = np.zeros(is_letter.shape, bool)
        is_same[1:] = np.logical_and.accumulate(letters[1:] == letters[:-1], axis=1)
        is_new = is_letter & ~is_same
        count = _ROOT + 1 + np.count_nonzero(is_new)
        nodes = np.zeros(is_letter.shape, np.int64)
        nodes[is_new] = np.arange(_ROOT + 1, count)
        nodes = np.maximum.accumulate(nodes, axis=0)
        parents = np.insert(nodes[:, :-1], 0, _ROOT, axis=1)[is_new]
        lengths = np.count_nonzero(is_letter, axis=1)
        ends = nodes[np.arange(len(order)), lengths - 1]
        has_children = np.zeros(count, bool)
        has_children[0] = True
        has_children[parents] = True
        # Renumbers nodes: those with children come first, so that `_next`, the largest array, needs
        # no rows for the many others.
        number = np.empty(count, np.int64)
        number[np.argsort(~has_children, kind="stable")] = np.arange(count)
        self._width, self._num_inner = int(letters.max()) + 1, int(np.count_nonzero(has_children))
        self._root = int(number[_ROOT])
        self._next = np.zeros(self._num_inner * self._width, np.int32)
        self._next[self._width * number[parents] + letters[is_new]] = number[nodes[is_new]]
        self._score = np.full(count, np.nan)
        self._id, self._length = np.zeros(count, np.int32), np.zeros(count, np.int64)
        ends = number[ends]
        self._score[ends], self._id[ends], self._length[ends] = scores[order], ids[order], lengths

    def _letters(self, texts: Sequence[str]) -> np.ndarray:
        """uint8 [pieces, longest]: codes, then zeros; all zeros if a character has no code."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        points = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
        letters = np.zeros((len(texts), lengths.max()), np.uint8)
        letters[np.arange(letters.shape[1]) < lengths[:, None]] = self._code[points]
        has_codes = np.count_nonzero(letters > _UNKNOWN_CODE, axis=1) == lengths
        letters[~has_codes & (lengths != 0)] = _NO_CODE
        return letters

    def encode(self, words: Words) -> tuple[FlatIds, np.ndarray]:
        """Ids of words, and bool [W]: whether they are sure; unsure words have no ids."""
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
        """uint8 [W, width]: codes of the word mark and of each word's characters, then zeros; int64
        [W]: their number, 0 for words that are too long or that normalization changes."""
        sizes = words.ends - words.starts + 1  # For ASCII words.
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
            if len(text) < width - 1 and expected == WORD_MARK + text:
                sizes[i] = len(expected)
                points = np.frombuffer(expected.encode("utf-32-le"), np.uint32)
                codes[i, : len(expected)] = self._code[points]
        return codes, sizes

    def _matches(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All pieces in all words: flat position of the first character, length, node."""
        # Walks down the trie from all characters of all words in parallel: after round n, each walk
        # has matched n characters; walks that no piece continues are dropped. There are as many
        # rounds as the longest piece has characters, so Python takes few steps for 8,192 words.
        flat = codes.reshape(-1)  # Every row ends with a zero, which no piece crosses.
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
        """The Viterbi algorithm with the two best sums of scores, for all words in parallel.

        Takes characters, uint8 [W, width], and sizes, int64 [W], 0 for words to leave out. Returns
        the node of the last piece in the best segmentation of the first n characters, int32 [W,
        width], and the lead of the best segmentation of the whole word, float64 [W].

            ▁ab -2.5, ▁a -1.0, b -2.0; "ab"   n      0     1     2    3
                                              best   0  -inf  -1.0 -2.5   ▁ab
                                              second              -3.0   ▁a b: a lead of 0.5
        """
        codes[sizes == 0] = _NO_CODE  # Nothing matches there.
        count, width = codes.shape
        # Sums for the first n characters of word w are at index width * w + n. They are float64, so
        # the lead is nearly exact: only the rounding in SentencePiece's float32 sums matters.
        best, second = np.full((2, count * width), -np.inf)
        piece = np.zeros(count * width, np.int32)
        best[::width] = 0.0
        starts, lengths, nodes = self._matches(codes)
        # Ordered by the character at which a piece starts: sums up to there are final by then.
        column = (starts % width).astype(np.uint8)
        order = np.argsort(column, kind="stable")
        bounds = np.searchsorted(column[order], np.arange(width + 1))
        starts, ends, nodes = starts[order], (starts + lengths)[order], nodes[order]
        scores = self._score[nodes]
        for first, last in zip(bounds.tolist(), bounds[1:].tolist()):
            # All pieces that start at this character of a word; they end at different characters.
            start, end, node = starts[first:last], ends[first:last], nodes[first:last]
            score = scores[first:last]
            totals, old = best[start] + score, best[end]
            # The second best is the lower of totals and old, or extends an earlier second best.
            runner_up = np.maximum(second[end], np.minimum(totals, old))
            second[end] = np.maximum(runner_up, second[start] + score)
            better = np.flatnonzero(totals > old)
            best[end[better]] = totals[better]
            piece[end[better]] = node[better]
        whole = np.arange(count) * width + sizes
        with np.errstate(invalid="ignore"):  # -inf - -inf: no segmentation, no lead.
            lead = best[whole] - second[whole]
        return piece.reshape(count, width), np.nan_to_num(lead, nan=-np.inf, posinf=np.inf)

    def _trace(self, piece: np.ndarray, sizes: np.ndarray) -> FlatIds:
        """Ids of the best segmentations, traced backwards from the last piece of each word."""
        # Each round goes back one piece in all words; finished words stay at 0 (node 0: length 0).
        found = []  # The last pieces come first.
        ends = sizes.copy()
        while ends.any():
            nodes = piece[np.arange(len(ends)), ends]
            found.append(nodes)
            ends -= self._length[nodes]
        nodes = np.stack(found[::-1], axis=1) if found else np.zeros((len(sizes), 0), np.int32)
        ids, is_piece = self._id[nodes], nodes > 0
        # SentencePiece merges adjacent unknown pieces.
        unknown = is_piece & (ids == self._unknown_id)
        is_piece[:, 1:] &= ~(unknown[:, 1:] & unknown[:, :-1])
        return FlatIds(ids[is_piece], np.count_nonzero(is_piece, axis=1))


def _scored_pieces(model: Any) -> _Pieces:
    """The pieces of a ModelProto that represent text."""
    kinds = type(model.pieces[0])
    columns = zip(*((piece.piece, piece.score, piece.type) for piece in model.pieces))
    texts, scores, types = map(np.array, columns, (object, np.float64, np.int64))
    is_normal, is_user_defined = types == kinds.NORMAL, types == kinds.USER_DEFINED
    # SentencePiece gives user-defined pieces scores that always win.
    highest = scores[is_normal].max(initial=0.0)
    sizes = [len(text.encode("utf-8")) for text in texts[is_user_defined]]
    scores[is_user_defined] = np.array(sizes) * highest - 0.1
    ids = np.flatnonzero(is_normal | is_user_defined)
    return _Pieces(texts[ids].tolist(), scores[ids], ids)
