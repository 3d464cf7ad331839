"""Candidates for answers to SQuAD's questions: spans of pieces that a model proposes.

A candidate is a span in a window with a score for its start and one for its end. Candidates are
plain arrays, so that those of several models can be stored in files and combined later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from albert_tf.errors import UserError
from data_pipeline.finetuning.squad_windows import Windows
from data_pipeline.settings import Settings, setting

SPAN_AVERAGES = ("proposers", "members")
_CHUNK = 1024  # Windows per chunk, whose pairs of starts and ends take a few MB.


@dataclasses.dataclass(frozen=True)
class AnswerSettings(Settings):
    """The rules by which spans are answers; for `span_average` see `average`."""

    n_best_size: int = setting(
        20,
        "Number of starts and of ends to try in each window, and of answers to keep for each "
        "question.",
        at_least=1,
        expert=True,
    )
    max_answer_length: int = setting(30, "Longest answer in pieces.", at_least=1, expert=True)
    span_average: str = setting(
        "proposers",
        "Models whose scores of a span are averaged: those that proposed it, as in the reference "
        "(proposers), or all (members).",
        one_of=SPAN_AVERAGES,
    )


class Candidates(NamedTuple):
    """Spans that one model proposes, by window, and within a window the likeliest starts first.

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


def candidates_from_logits(
    windows: Windows,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    settings: AnswerSettings = AnswerSettings(),
) -> Candidates:
    """The candidates of version 1.1, start and end logits float [F, S]: the likeliest starts with
    the likeliest ends, at most n_best_size ** 2 spans a window.
    """
    shape = len(windows), windows.settings.max_seq_length
    check_outputs(windows, (shape, start_logits), (shape, end_logits))
    parts = []
    for first in range(0, len(windows), _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, len(windows)))
        # As in the reference, all positions compete, also those of the question and of padding;
        # their spans are dropped afterwards. The first of equal logits wins.
        start_scores, starts = _likeliest(start_logits[rows], settings.n_best_size)
        end_scores, ends = _likeliest(end_logits[rows], settings.n_best_size)
        size = starts.shape[1]
        # Every start with every end, starts outside: [B, N] -> [B, N * N].
        outer = [np.repeat(array, size, axis=1) for array in (starts, start_scores)]
        inner = [np.tile(array, size) for array in (ends, end_scores)]
        parts.append(_allowed(windows, rows, outer, inner, settings))
    return Candidates(*map(np.concatenate, zip(*parts)))


def candidates_from_beams(
    windows: Windows, outputs: Mapping[str, np.ndarray], settings: AnswerSettings = AnswerSettings()
) -> Candidates:
    """The candidates of version 2.0: the starts of the beam, each with its own ends.

    The outputs of AlbertSpanLabelerV2 are `start_top_log_probs`, `start_top_index` [F, I] and
    `end_top_log_probs`, `end_top_index` [F, I * J], end j of start i at i * J + j. n_best_size is
    not used.
    """
    names = ("start_top_index", "start_top_log_probs", "end_top_index", "end_top_log_probs")
    starts, start_scores, ends, end_scores = (np.asarray(outputs[name]) for name in names)
    count, size = len(windows), starts.shape[-1]
    per_start = ends.shape[-1] // max(size, 1)
    check_outputs(
        windows,
        *(((count, size), array) for array in (starts, start_scores)),
        *(((count, size * per_start), array) for array in (ends, end_scores)),
    )
    outer = [np.repeat(array, per_start, axis=1) for array in (starts, start_scores)]
    return _allowed(windows, np.arange(count), outer, [ends, end_scores], settings)


def check_outputs(windows: Windows, *pairs: tuple[tuple[int, ...], np.ndarray]) -> None:
    """Raises UserError unless each array has the shape that it is paired with, and no NaN."""
    for expected, array in pairs:
        if array.shape != expected:
            raise UserError(
                f"expected model outputs of shape {expected} for the {len(windows)} windows of "
                f"{windows.examples.source}; received {array.shape}. Predict the same file with "
                "the same sizes of windows."
            )
        if np.isnan(array).any():
            raise UserError(
                f"expected numbers as model outputs for {windows.examples.source}; received NaN. "
                "The model diverged in training; use an earlier checkpoint, or train with a lower "
                "learning rate."
            )


def _likeliest(logits: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The highest logits and their positions: [B, S] -> [B, size] twice, highest first."""
    positions = np.argsort(-logits, axis=1, kind="stable")[:, :size]
    return np.take_along_axis(logits, positions, axis=1), positions


def _allowed(
    windows: Windows,
    rows: np.ndarray,
    starts_and_scores: list[np.ndarray],
    ends_and_scores: list[np.ndarray],
    settings: AnswerSettings,
) -> Candidates:
    """The spans that can be answers, among those proposed in the windows `rows`, int [B].

    Both ends must be in the context, the start must have its maximum context in this window, and
    the span must be neither empty nor too long. Starts and ends are (positions in the window,
    scores), each [B, K].
    """
    offsets = windows.offsets[rows, None]
    starts = starts_and_scores[0] - offsets
    ends = ends_and_scores[0] - offsets
    lengths = windows.lengths[rows, None]
    kept = (starts >= 0) & (starts <= ends) & (ends < lengths)
    kept &= ends - starts < settings.max_answer_length
    # bool [B, S] for windows of different lengths; positions after a window's end are False.
    has_most = np.zeros((len(rows), int(lengths.max(initial=1))), bool)
    for row, window in enumerate(rows):
        has_most[row, : windows.lengths[window]] = windows.max_context[window]
    # Starts outside are clipped for the lookup; `kept` is already False for them.
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


def average(models: Sequence[Candidates], over: str = "proposers") -> Candidates:
    """The candidates of an ensemble, with the mean of their scores over the models.

    Within a window, spans are in the order of their first appearance. A span that two of three
    models propose, with scores 1 and 2, gets 1.5 over its proposers; if the lowest score of the
    third model in this window is -3, it gets 0 over all members.

    Args:
      models: candidates of the same windows, of one model or more.
      over: "proposers": the reference's mean over the models that proposed the span, so that a
        span of a single model competes on equal terms. "members": the mean over all models; one
        that did not propose the span counts with its lowest scores in the window, or its lowest
        ones overall if it proposed nothing there.
    """
    windows, starts, ends, start_scores, end_scores = map(np.concatenate, zip(*models))
    keys = np.stack([windows, starts, ends], axis=1)
    _, first, group, counts = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    group = group.reshape(-1)  # NumPy 2.0 keeps a dimension.
    order = np.lexsort((first, windows[first]))
    chosen = first[order]
    sums = [np.bincount(group, scores, len(first)) for scores in (start_scores, end_scores)]
    if over == "members":
        _add_floors(sums, models, windows[first], group)
        counts = np.full_like(counts, sum(len(model.windows) > 0 for model in models))
    means = [(total / counts)[order] for total in sums]
    return Candidates(windows[chosen], starts[chosen], ends[chosen], *means)


def _add_floors(
    sums: list[np.ndarray], models: Sequence[Candidates], windows: np.ndarray, group: np.ndarray
) -> None:
    """Adds to the sums of spans, in place, the lowest scores of the models that did not propose
    them.

    Args:
      sums: float64 [G] of starts and of ends.
      windows: int [G], the window of each span.
      group: int [K], the span of each candidate, with the models concatenated.
    """
    bounds = np.cumsum([0, *(len(model.windows) for model in models)])
    for model, begin, end in zip(models, bounds, bounds[1:]):
        if begin == end:
            continue  # A model that proposed nothing at all is not counted.
        others = np.ones(len(windows), bool)
        others[group[begin:end]] = False
        for total, scores in zip(sums, (model.start_scores, model.end_scores)):
            lowest = np.full(windows.max() + 1, np.inf)
            np.minimum.at(lowest, model.windows, scores)
            lowest[np.isinf(lowest)] = scores.min()
            total[others] += lowest[windows[others]]
