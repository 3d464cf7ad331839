"""Answers to SQuAD's questions: from what a model says about each window to texts.

A candidate is a span of pieces in a window with a score for its start and one for its end. Those of
all windows of a question compete; several models are an ensemble, whose scores are averaged span by
span. Candidates are plain arrays, so that they can be kept in a file and combined later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from albert_tf.errors import UserError
from data_pipeline.finetuning.squad_windows import Windows

# The reference's numbers for a question that has no candidate, or no window.
_NO_CANDIDATE_SCORE = -1e6
_NO_WINDOW_ODDS = 1e6
_CHUNK = 1024  # Windows at once; the pairs of starts and ends take a few MB then.


@dataclasses.dataclass(frozen=True)
class AnswerSettings:
    """Which spans are answers.

    Attributes:
      n_best_size: starts and ends of a window that are tried, and answers kept for each question.
      max_answer_length: longest answer, in pieces.
    """

    n_best_size: int = 20
    max_answer_length: int = 30

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) < 1:
                raise UserError(
                    f"{field.name} should be at least 1; received {getattr(self, field.name)}."
                )


class Candidates(NamedTuple):
    """Spans that one model proposes, window by window, in each the likeliest starts first.

    Attributes:
      windows: int32 [K], ascending, the window of each span.
      starts, ends: int32 [K], its first and last piece in the window's whole context.
      start_scores, end_scores: float64 [K], logits or log-probabilities.
    """

    windows: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    start_scores: np.ndarray
    end_scores: np.ndarray


class ScoredAnswer(NamedTuple):
    """One of the best answers to a question, with the fields of the reference's n-best file.

    Attributes:
      text: a part of the original context.
      probability: softmax of the sum of both scores over the answers that are kept.
      start_log_prob, end_log_prob: scores of start and end, averaged over models; logits in
        version 1.1, in spite of the name.
    """

    text: str
    probability: float
    start_log_prob: float
    end_log_prob: float


def candidates_from_logits(
    windows: Windows,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    settings: AnswerSettings | None = None,
) -> Candidates:
    """The candidates of version 1.1: the likeliest starts with the likeliest ends.

    As in the reference, all positions compete for a place among the likeliest, those of the
    question and of the padding as well; spans of them are left out afterwards. Among equal logits
    the first position wins.

    Args:
      windows: F windows.
      start_logits, end_logits: float [F, S].
      settings: None: the defaults.

    Returns:
      At most n_best_size ** 2 spans a window.

    Raises:
      UserError: the logits are of other windows.
    """
    settings = settings or AnswerSettings()
    shape = len(windows), windows.settings.max_seq_length
    _check_shapes(windows, (shape, start_logits), (shape, end_logits))
    parts = []
    for first in range(0, len(windows), _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, len(windows)))
        start_scores, starts = _likeliest(start_logits[rows], settings.n_best_size)
        end_scores, ends = _likeliest(end_logits[rows], settings.n_best_size)
        size = starts.shape[1]
        # Every start with every end, starts outside: [B, N] -> [B, N * N].
        outer = [np.repeat(array, size, axis=1) for array in (starts, start_scores)]
        inner = [np.tile(array, size) for array in (ends, end_scores)]
        parts.append(_allowed(windows, rows, outer, inner, settings))
    return Candidates(*map(np.concatenate, zip(*parts)))


def candidates_from_beams(
    windows: Windows,
    outputs: Mapping[str, np.ndarray],
    settings: AnswerSettings | None = None,
) -> Candidates:
    """The candidates of version 2.0: the starts of the beam, each with its own ends.

    Args:
      windows: F windows.
      outputs: of AlbertSpanLabelerV2: `start_top_log_probs`, `start_top_index` [F, I] and
        `end_top_log_probs`, `end_top_index` [F, I * J], end j of start i at i * J + j.
      settings: None: the defaults; n_best_size is not used.

    Returns:
      At most I * J spans a window.

    Raises:
      UserError: the outputs are of other windows.
    """
    settings = settings or AnswerSettings()
    names = ("start_top_index", "start_top_log_probs", "end_top_index", "end_top_log_probs")
    starts, start_scores, ends, end_scores = (np.asarray(outputs[name]) for name in names)
    count, size = len(windows), starts.shape[-1]
    per_start = ends.shape[-1] // max(size, 1)
    _check_shapes(
        windows,
        *(((count, size), array) for array in (starts, start_scores)),
        *(((count, size * per_start), array) for array in (ends, end_scores)),
    )
    outer = [np.repeat(array, per_start, axis=1) for array in (starts, start_scores)]
    return _allowed(windows, np.arange(count), outer, [ends, end_scores], settings)


def _check_shapes(windows: Windows, *pairs: tuple[tuple[int, ...], np.ndarray]) -> None:
    for expected, array in pairs:
        if array.shape != expected:
            raise UserError(
                f"expected model outputs of shape {expected} for the {len(windows)} windows of "
                f"{windows.examples.source}; received {array.shape}. Predict the same file with "
                "the same sizes of windows."
            )


def _likeliest(logits: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The highest logits and their positions: [B, S] -> [B, size] twice, highest first."""
    found = np.argsort(-logits, axis=1, kind="stable")[:, :size]
    return np.take_along_axis(logits, found, axis=1), found


def _allowed(
    windows: Windows,
    rows: np.ndarray,
    starts_and_scores: list[np.ndarray],
    ends_and_scores: list[np.ndarray],
    settings: AnswerSettings,
) -> Candidates:
    """Those of some spans that can be answers.

    Both ends are in the context, the start is where it has the most context of all windows, and the
    span is neither empty nor too long.

    Args:
      windows: all windows.
      rows: int [B], those that the spans are of.
      starts_and_scores, ends_and_scores: positions in the window and scores, [B, K] each.
      settings: how long an answer may be.

    Returns:
      The spans that remain, in their order.
    """
    offsets = windows.offsets[rows, None]
    starts = starts_and_scores[0] - offsets
    ends = ends_and_scores[0] - offsets
    lengths = windows.lengths[rows, None]
    kept = (starts >= 0) & (starts <= ends) & (ends < lengths)
    kept &= ends - starts < settings.max_answer_length
    # [B, S]: bools of windows of unlike lengths; what a window does not have is False.
    has_most = np.zeros((len(rows), int(lengths.max(initial=1))), bool)
    for row, window in enumerate(rows):
        has_most[row, : windows.lengths[window]] = windows.max_context[window]
    kept &= np.take_along_axis(has_most, np.clip(starts, 0, has_most.shape[1] - 1), axis=1)
    row, place = np.nonzero(kept)
    first_pieces = windows.starts[rows][row]
    return Candidates(
        rows[row].astype(np.int32),
        (first_pieces + starts[row, place]).astype(np.int32),
        (first_pieces + ends[row, place]).astype(np.int32),
        starts_and_scores[1][row, place].astype(np.float64),
        ends_and_scores[1][row, place].astype(np.float64),
    )


def average(models: Sequence[Candidates]) -> Candidates:
    """The candidates of an ensemble, with the mean of their scores over the models.

    The reference's mean: over the models that proposed the span, not over all. A span's place among
    those of its window is where it first appeared.

    Args:
      models: candidates of the same windows, of one model or more.
    """
    windows, starts, ends, start_scores, end_scores = map(np.concatenate, zip(*models))
    keys = np.stack([windows, starts, ends], axis=1)
    _, first, group, counts = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    group = group.reshape(-1)  # NumPy 2.0 keeps a dimension.
    order = np.lexsort((first, windows[first]))
    chosen = first[order]
    means = [
        (np.bincount(group, scores, len(first)) / counts)[order]
        for scores in (start_scores, end_scores)
    ]
    return Candidates(windows[chosen], starts[chosen], ends[chosen], *means)


def best_answers(
    windows: Windows, models: Sequence[Candidates], settings: AnswerSettings | None = None
) -> dict[str, list[ScoredAnswer]]:
    """The best answers to every question, by its id.

    Args:
      windows: all windows of the questions.
      models: candidates of each model of an ensemble, or of one.
      settings: None: the defaults.

    Returns:
      Up to n_best_size different texts for each question, best first. A question without a
      candidate has one answer, "" (the reference answers "empty" in version 1.1).
    """
    settings = settings or AnswerSettings()
    found = average(models)
    numbers = windows.question_numbers[found.windows]
    totals = found.start_scores + found.end_scores
    # Stable: spans of one score keep their order, earlier windows first.
    order = np.lexsort((-totals, numbers))
    bounds = np.searchsorted(numbers[order], np.arange(len(windows.examples.questions) + 1))
    return {
        question.id: _distinct(windows, found, order[bounds[i] : bounds[i + 1]], settings)
        for i, question in enumerate(windows.examples.questions)
    }


def _distinct(
    windows: Windows, found: Candidates, order: np.ndarray, settings: AnswerSettings
) -> list[ScoredAnswer]:
    """The first texts that differ, of one question's candidates in order."""
    kept: dict[str, int] = {}
    for i in order:
        text = answer_text(windows, found.windows[i], found.starts[i], found.ends[i])
        kept.setdefault(text, i)
        if len(kept) == settings.n_best_size:
            break
    if not kept:
        return [ScoredAnswer("", 1.0, _NO_CANDIDATE_SCORE, _NO_CANDIDATE_SCORE)]
    chosen = list(kept.values())
    starts, ends = found.start_scores[chosen], found.end_scores[chosen]
    weights = np.exp(starts + ends - (starts + ends).max())
    columns = (weights / weights.sum(), starts, ends)
    return [ScoredAnswer(*row) for row in zip(kept, *(column.tolist() for column in columns))]


def answer_text(windows: Windows, window: int, start: int, end: int) -> str:
    """The part of the original context from one piece to another, without white space around it.

    Args:
      windows: all windows.
      window: one of the question.
      start, end: first and last piece, counted in the whole context.

    Returns:
      The text as it stands in the file.
    """
    pieces = windows.context_of(window)
    context = windows.examples.contexts[windows.question_of(window).context]
    # The word mark that SentencePiece adds in front of a text ends at -1; the reference takes the
    # first character for it.
    return context[pieces.starts[start] : max(pieces.ends[end], 0) + 1].strip()


def null_odds(windows: Windows, answer_logits: Sequence[np.ndarray]) -> dict[str, float]:
    """How much speaks against any answer, for each question: a logit, high if it has none.

    The lowest of all windows counts: one that holds the answer is enough.

    Args:
      windows: F windows.
      answer_logits: float [F] of each model of an ensemble; the mean over models is taken.

    Returns:
      Logits by the question's id; 1,000,000 for a question without a window, as in the reference.
    """
    _check_shapes(windows, *(((len(windows),), np.asarray(logits)) for logits in answer_logits))
    lowest = np.full((len(answer_logits), len(windows.examples.questions)), _NO_WINDOW_ODDS)
    for row, logits in zip(lowest, answer_logits):
        np.minimum.at(row, windows.question_numbers, np.asarray(logits, np.float64))
    means = lowest.mean(axis=0).tolist()
    return {question.id: mean for question, mean in zip(windows.examples.questions, means)}


def predictions(
    answers: Mapping[str, Sequence[ScoredAnswer]],
    odds: Mapping[str, float] | None = None,
    threshold: float | None = None,
) -> dict[str, str]:
    """The answer to each question, as the official scripts read it.

    A question is answered if its null odds are at most the threshold. The reference answers below
    it only, and so not the question at which the threshold was found.

    Args:
      answers: of `best_answers`.
      odds: of `null_odds`; None: everything is answered.
      threshold: of `squad_scores.best_thresholds`; None: everything is answered.

    Returns:
      Texts by the question's id; "" for no answer.
    """
    if odds is None or threshold is None:
        return {name: best[0].text for name, best in answers.items()}
    return {
        name: best[0].text if odds[name] <= threshold else "" for name, best in answers.items()
    }
