"""The best answers to questions, in a graph: the twin of `squad_candidates` and `squad_answers`.

Shapes: B questions, F windows, S positions, K starts and J ends of each start, C candidates of all
questions, concatenated.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf.finetuning.tasks.squad_candidates import AnswerSettings
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import AlignedBatch
from export.graphs.windows import GraphWindows

# An odd number has an inverse modulo 2^64, the modulus at which int64 wraps around.
_BASE = 0x2545F4914F6CDD1D
_INVERSE = pow(_BASE, -1, 1 << 64)
_ROW, _LENGTH = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F


class Spans(NamedTuple):
    """Spans that the model proposes in each window, in the order of the reference.

    Attributes:
      starts: int32 [F, K], positions in the window, most likely first.
      ends: int32 [F, K, J], or [F, 1, J] if they do not depend on the start.
      start_scores: float32 [F, K].
      end_scores: float32 [F, K, J] or [F, 1, J].
    """

    starts: tf.Tensor
    ends: tf.Tensor
    start_scores: tf.Tensor
    end_scores: tf.Tensor


class Answers(NamedTuple):
    """Up to n best answers of each question, best first, as ragged tensors [B, (answers)].

    Attributes:
      texts: string, parts of the original contexts.
      probabilities: float32, a softmax over the answers that were kept.
      starts, ends: int32, character positions in the context, the end exclusive.
      byte_starts, byte_ends: int32, the same in bytes.
    """

    texts: tf.RaggedTensor
    probabilities: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    byte_starts: tf.RaggedTensor
    byte_ends: tf.RaggedTensor


class _Candidates(NamedTuple):
    """Spans that can be answers, int32 [C] and float64 [C].

    Attributes:
      rows: the index of the question.
      starts, ends: first and last piece, counted in the question's whole context.
      scores: the sum of start and end score.
    """

    rows: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    scores: tf.Tensor

    def chosen(self, which: tf.Tensor) -> _Candidates:
        return _Candidates(*(tf.gather(each, which) for each in self))


def spans_of_logits(start_logits: tf.Tensor, end_logits: tf.Tensor, n_best_size: int) -> Spans:
    """The most likely starts and ends from logits, float32 [F, S] (version 1.1)."""
    size = tf.minimum(n_best_size, tf.shape(start_logits)[1])
    starts, ends = (tf.math.top_k(logits, size) for logits in (start_logits, end_logits))
    return Spans(starts.indices, ends.indices[:, None], starts.values, ends.values[:, None])


def spans_of_beams(outputs: dict[str, tf.Tensor]) -> Spans:
    """The starts of the beam, each with its own ends (version 2.0)."""
    starts = outputs["start_top_index"]
    shape = tf.concat([tf.shape(starts), [-1]], axis=0)  # [F, K, J]
    ends, scores = (
        tf.reshape(outputs[name], shape) for name in ("end_top_index", "end_top_log_probs")
    )
    return Spans(starts, ends, outputs["start_top_log_probs"], scores)


def best_answers(
    windows: GraphWindows,
    spans: Spans,
    characters: Characters,
    pieces: AlignedBatch,
    settings: AnswerSettings,
) -> Answers:
    """`squad_answers.best_answers` in a graph: up to n_best_size different texts for each of B
    questions, none for a question without candidates. Characters and pieces are of the contexts.
    """
    # Of equal texts, keep the one with the highest score, which comes first after sorting.
    found = _sorted(_allowed(windows, spans, settings.max_answer_length))
    starts, ends = _trimmed(found, characters, pieces)
    distinct = _first_of_each(_fingerprints(characters, found.rows, starts, ends))
    best = tf.gather(
        distinct, _first_of_rows(tf.gather(found.rows, distinct), settings.n_best_size)
    )
    rows = tf.gather(found.rows, best)
    num_rows = tf.size(characters.lengths)
    scores = tf.gather(found.scores, best)
    highest = tf.math.unsorted_segment_max(scores, rows, num_rows)
    weights = tf.exp(scores - tf.gather(highest, rows))  # A softmax over the kept answers.
    sums = tf.gather(tf.math.unsorted_segment_sum(weights, rows, num_rows), rows)
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, num_rows)

    def ragged(values: tf.Tensor) -> tf.RaggedTensor:
        return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)

    places = [tf.gather(each, best) for each in (starts, ends)]
    in_bytes = [characters.bytes_at(rows, each) for each in places]
    texts = tf.strings.substr(
        tf.gather(characters.text, rows), in_bytes[0], in_bytes[1] - in_bytes[0]
    )
    probabilities = tf.cast(weights / sums, tf.float32)
    return Answers(*map(ragged, (texts, probabilities, *places, *in_bytes)))


def _allowed(windows: GraphWindows, spans: Spans, max_answer_length: int) -> _Candidates:
    """The spans that can be answers, in the original order; see `squad_candidates._allowed`."""
    starts = spans.starts - windows.offsets[:, None]  # [F, K]
    ends = spans.ends - windows.offsets[:, None, None]  # [F, K, J], or [F, 1, J]
    start = starts[:, :, None]
    first = windows.starts[:, None] + starts
    kept = (start >= 0) & (start <= ends) & (ends < windows.lengths[:, None, None])
    kept &= ends - start < max_answer_length
    kept &= windows.has_most_context(first)[:, :, None]  # [F, K, J]
    last = windows.starts[:, None, None] + ends
    scores = tf.cast(spans.start_scores, tf.float64)[:, :, None]
    scores += tf.cast(spans.end_scores, tf.float64)
    shape = tf.shape(kept)
    columns = (windows.rows[:, None, None], first[:, :, None], last, scores)
    return _Candidates(*(tf.boolean_mask(tf.broadcast_to(each, shape), kept) for each in columns))


def _sorted(found: _Candidates) -> _Candidates:
    """The candidates sorted by question, highest score first; equal scores keep their order."""
    # Both sorts are stable, because the underlying tf.math.top_k is stable.
    order = tf.argsort(found.scores, direction="DESCENDING", stable=True)
    order = tf.gather(order, tf.argsort(tf.gather(found.rows, order), stable=True))
    return found.chosen(order)


def _first_of_rows(rows: tf.Tensor, count: int) -> tf.Tensor:
    """Indices of the first `count` of each row; rows ascend: [0, 0, 0, 2], 2 -> [0, 1, 3]."""
    at = tf.range(tf.size(rows))
    rank = at - tf.searchsorted(rows, rows, side="left")
    return tf.boolean_mask(at, rank < count)


def _first_of_each(keys: tf.Tensor) -> tf.Tensor:
    """Indices of the first occurrence of each key: [7, 8, 7] -> [0, 1]."""
    unique, group = tf.unique(keys)
    return tf.math.unsorted_segment_min(tf.range(tf.size(group)), group, tf.size(unique))


def _fingerprints(
    characters: Characters, rows: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tf.Tensor:
    """Hashes int64 [C] that are equal if question and text are equal."""
    # This compares thousands of candidates of a long context without extracting their texts. The
    # prefix sums of c[i] * base^i over the code points c are computed once; the difference of two
    # of them, divided by base^start, depends only on the text (the Rabin-Karp hash). Collisions
    # can be constructed; such texts count as one answer.
    ones = tf.ones_like(characters.codes, tf.int64)
    powers = tf.math.cumprod(ones * _wrapped(_BASE))
    inverses = tf.concat([[1], tf.math.cumprod(ones * _wrapped(_INVERSE))], axis=0)
    sums = tf.cumsum(tf.cast(characters.codes, tf.int64) * powers)
    sums = tf.concat([tf.zeros([1], tf.int64), sums], axis=0)
    texts = tf.gather(characters.begins, rows)
    found = tf.gather(sums, texts + ends) - tf.gather(sums, texts + starts)
    found *= tf.gather(inverses, texts + starts)
    found += tf.cast(rows, tf.int64) * _wrapped(_ROW)
    return found + tf.cast(ends - starts, tf.int64) * _wrapped(_LENGTH)


def _wrapped(number: int) -> int:
    """A number below 2^64, wrapped to int64: 2^64 - 1 -> -1."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _trimmed(
    found: _Candidates, characters: Characters, pieces: AlignedBatch
) -> tuple[tf.Tensor, tf.Tensor]:
    """The first character of each answer, and the one after the last; see `answer_span`."""
    begins = tf.gather(tf.cast(pieces.ids.row_starts(), tf.int32), found.rows)
    first = tf.gather(pieces.starts.flat_values, begins + found.starts)
    # The word mark that SentencePiece adds before a text ends at -1.
    last = tf.maximum(tf.gather(pieces.ends.flat_values, begins + found.ends), 0)
    starts, ends = characters.trimmed(found.rows, first, last)
    return starts, tf.where(starts < ends, characters.after_marks(found.rows, ends), ends)


def null_scores(windows: GraphWindows, answer_logits: tf.Tensor) -> tf.Tensor:
    """The no-answer score, float32 [B]: the lowest logit [F] over the windows of each question.

    1,000,000 for a question whose context has no pieces, as in `squad_answers.null_odds`.
    """
    lowest = tf.math.unsorted_segment_min(answer_logits, windows.rows, tf.size(windows.counts))
    return tf.where(windows.totals > 0, lowest, 1e6)
