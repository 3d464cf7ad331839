"""Windows over questions with contexts, in a graph: the twin of `squad_windows.Windows`.

Shapes: B questions, F windows of all questions, S the longest window, K starts with J ends each.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from data_pipeline.finetuning.encoded import SPECIAL_PIECES_OF_PAIR
from data_pipeline.finetuning.squad_windows import WindowSettings
from data_pipeline.tokenizers.base import Tokenizer
from export.graphs.checks import required

MOST_WINDOWS = 512  # Per request: more would take minutes.
_TOO_LONG = (
    f"the contexts make more than {MOST_WINDOWS} windows: send fewer questions at once, or shorter "
    "contexts"
)


class GraphWindows(NamedTuple):
    """All windows of B questions, ordered by question and place in the context.

    A question whose context has no pieces gets one window without any, so that the model always has
    an input.

    Attributes:
      inputs: input_word_ids, input_mask, input_type_ids and impossible_positions int32 [F, S].
      rows: int32 [F], the question of each window.
      numbers: int32 [F], the index of the window among those of its question.
      starts: int32 [F], the first context piece in the window.
      lengths: int32 [F], number of context pieces in the window.
      offsets: int32 [F], position in the window of its first context piece.
      counts: int32 [B], number of windows of each question.
      steps, rooms, totals: int32 [B], distance between two windows, most context pieces that a
        window can hold, and number of pieces of the context.
    """

    inputs: dict[str, tf.Tensor]
    rows: tf.Tensor
    numbers: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor
    offsets: tf.Tensor
    counts: tf.Tensor
    steps: tf.Tensor
    rooms: tf.Tensor
    totals: tf.Tensor

    def has_most_context(self, pieces: tf.Tensor) -> tf.Tensor:
        """Whether context pieces, int32 [F, K], count in these windows: bool [F, K].

        A piece counts only in the window where it has the most context around it, in the first of
        equal ones; see `squad_windows.max_context`.
        """
        steps, rooms, totals, counts = (
            tf.gather(each, self.rows)[:, None, None]
            for each in (self.steps, self.rooms, self.totals, self.counts)
        )  # [F, 1, 1]
        # Compare only the few windows that contain a piece. With room for 6, piece 7 is in windows
        # that start at 2 (7 - 6 + 1) to 7: with steps of 3 (0, 3, 6, 9 ...), numbers 1 and 2.
        pieces = pieces[:, :, None]
        earliest = tf.maximum(-((rooms - 1 - pieces) // steps), 0)  # [F, K, 1]
        most = tf.minimum(tf.reduce_max(rooms // steps) + 1, tf.reduce_max(counts))
        number = earliest + tf.range(most)  # [F, K, W]
        starts = number * steps
        lengths = tf.minimum(totals - starts, rooms)
        left = pieces - starts
        right = lengths - 1 - left
        # BERT's rule, see `squad_windows.max_context`; in float64, like the NumPy version.
        score = tf.cast(tf.minimum(left, right), tf.float64) + 0.01 * tf.cast(lengths, tf.float64)
        is_inside = (left >= 0) & (right >= 0) & (number < counts)
        score = tf.where(is_inside, score, tf.constant(-1.0, tf.float64))
        is_best = score == tf.reduce_max(score, axis=2, keepdims=True)
        first = tf.reduce_min(tf.where(is_best, number, tf.reduce_max(counts)), axis=2)  # [F, K]
        return first == self.numbers[:, None]


def make_windows(
    questions: tf.RaggedTensor,
    contexts: tf.RaggedTensor,
    vocabulary: Tokenizer,
    settings: WindowSettings,
    shortest: int,
) -> GraphWindows:
    """Windows `[CLS] question [SEP] part of the context [SEP]`, padded to the longest. A request
    for more than MOST_WINDOWS is refused.

    Args:
      questions, contexts: pieces, int32 [B, (pieces)] each.
      shortest: lower bound of S; the beams of version 2.0 need at least this many positions.
    """
    question_lengths = tf.minimum(
        tf.cast(questions.row_lengths(), tf.int32), settings.max_query_length
    )
    totals = tf.cast(contexts.row_lengths(), tf.int32)
    rooms = settings.max_seq_length - question_lengths - SPECIAL_PIECES_OF_PAIR
    steps = tf.minimum(rooms, settings.doc_stride)
    # 10 pieces, room for 6, steps of 3: windows at 0, 3 and 6.
    counts = -(-tf.maximum(totals - rooms, 0) // steps) + 1
    # Before any window is made, since it takes memory.
    counts = required(counts, tf.reduce_sum(counts) <= MOST_WINDOWS, _TOO_LONG)
    rows = tf.repeat(tf.range(tf.size(counts)), counts)
    numbers = tf.range(tf.size(rows)) - tf.gather(tf.cumsum(counts, exclusive=True), rows)
    starts = numbers * tf.gather(steps, rows)
    lengths = tf.minimum(tf.gather(totals, rows) - starts, tf.gather(rooms, rows))
    offsets = tf.gather(question_lengths, rows) + 2
    ends = offsets + lengths
    positions = tf.range(tf.maximum(tf.reduce_max(ends) + 1, shortest))[None]  # [1, S]
    offset, end = offsets[:, None], ends[:, None]
    is_context = (positions >= offset) & (positions < end)
    is_question = (positions >= 1) & (positions < offset - 1)
    is_real = positions <= end
    word_ids = tf.where(is_real, vocabulary.sep_id, vocabulary.pad_id)
    word_ids = tf.where(positions == 0, vocabulary.cls_id, word_ids)
    word_ids = tf.where(is_question, _pieces_at(questions, rows, positions - 1), word_ids)
    in_context = starts[:, None] + positions - offset
    word_ids = tf.where(is_context, _pieces_at(contexts, rows, in_context), word_ids)
    inputs = {
        "input_word_ids": word_ids,
        "input_mask": tf.cast(is_real, tf.int32),
        "input_type_ids": tf.cast(is_real & (positions >= offset), tf.int32),
        "impossible_positions": 1 - tf.cast(is_context | (positions == 0), tf.int32),
    }
    return GraphWindows(
        inputs, rows, numbers, starts, lengths, offsets, counts, steps, rooms, totals
    )


def _pieces_at(texts: tf.RaggedTensor, rows: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """Pieces of the texts `rows` [F] at places [F, S], int32; arbitrary where there is no piece."""
    at = tf.gather(tf.cast(texts.row_starts(), tf.int32), rows)[:, None] + places
    values = tf.concat([texts.flat_values, [0]], axis=0)  # The 0 is for places after all texts.
    return tf.gather(values, tf.clip_by_value(at, 0, tf.size(texts.flat_values)))
