"""Answers to SQuAD's questions: from the candidates of all windows to one text per question.

The candidates of all windows of a question compete; several models are an ensemble, whose scores
are averaged span by span. Follows google-research/albert's `write_predictions_v1` and `_v2`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from albert_tf.finetuning.tasks.squad_candidates import (
    AnswerSettings,
    Candidates,
    average,
    check_outputs,
)
from data_pipeline.finetuning.squad_windows import Windows
from data_pipeline.tokenizers.normalization import is_mark

# The reference's numbers for a question that has no candidate, or no window.
NO_CANDIDATE_SCORE = -1e6
_NO_WINDOW_ODDS = 1e6


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


def best_answers(
    windows: Windows, models: Sequence[Candidates], settings: AnswerSettings | None = None
) -> dict[str, list[ScoredAnswer]]:
    """Up to n_best_size different texts for each question by its id, best first.

    A question without a candidate has one answer, "" (the reference answers "empty" in version
    1.1). `models` are the candidates of each model of an ensemble, or of one.
    """
    settings = settings or AnswerSettings()
    spans = average(models, settings.span_average)
    numbers = windows.question_numbers[spans.windows]
    totals = spans.start_scores + spans.end_scores
    # Stable: spans with equal scores keep their order, earlier windows first.
    order = np.lexsort((-totals, numbers))
    # A question without a candidate has two equal bounds, and so an empty slice.
    bounds = np.searchsorted(numbers[order], np.arange(len(windows.examples.questions) + 1))
    return {
        question.id: _distinct(windows, spans, order[bounds[i] : bounds[i + 1]], settings)
        for i, question in enumerate(windows.examples.questions)
    }


def _distinct(
    windows: Windows, spans: Candidates, order: np.ndarray, settings: AnswerSettings
) -> list[ScoredAnswer]:
    """The first distinct texts of one question's candidates, which `order` gives best first."""
    kept: dict[str, int] = {}
    for i in order:
        text = answer_text(windows, spans.windows[i], spans.starts[i], spans.ends[i])
        # Several spans may give one text; the best of them is kept.
        kept.setdefault(text, i)
        if len(kept) == settings.n_best_size:
            break
    if not kept:
        return [ScoredAnswer("", 1.0, NO_CANDIDATE_SCORE, NO_CANDIDATE_SCORE)]
    chosen = list(kept.values())
    starts, ends = spans.start_scores[chosen], spans.end_scores[chosen]
    # Subtract the highest sum, because exp of a large logit overflows.
    weights = np.exp(starts + ends - (starts + ends).max())
    columns = (weights / weights.sum(), starts, ends)
    return [ScoredAnswer(*row) for row in zip(kept, *(column.tolist() for column in columns))]


def answer_text(windows: Windows, window: int, start: int, end: int) -> str:
    """The text of the original context at `answer_span`."""
    context = windows.examples.contexts[windows.question_of(window).context]
    return context[slice(*answer_span(windows, window, start, end))]


def answer_span(windows: Windows, window: int, start: int, end: int) -> tuple[int, int]:
    """The characters of the original context from piece `start` to piece `end`, both counted in the
    whole context: the position of the first character and the one after the last; equal if nothing
    is left.

    Surrounding white space is left out. Combining marks after the last letter, which are in no
    piece, are included: in "à la" with a separate mark, the piece "a" is the first two characters.
    The reference ends before the mark, in the middle of what people see as one letter.
    """
    pieces = windows.context_of(window)
    context = windows.examples.contexts[windows.question_of(window).context]
    first = int(pieces.starts[start])
    # The word mark that SentencePiece adds in front of a text ends at -1; as in the reference, it
    # is given the first character.
    part = context[first : max(int(pieces.ends[end]), 0) + 1]
    first += len(part) - len(part.lstrip())
    after = first + len(part.strip())
    while first < after < len(context) and is_mark(context[after]):
        after += 1
    return first, after


def null_odds(windows: Windows, answer_logits: Sequence[np.ndarray]) -> dict[str, float]:
    """The score of having no answer, for each question by its id: a logit, high if it has none.

    `answer_logits` has float [F] for each model, with F windows; the mean over models is taken.
    """
    check_outputs(windows, *(((len(windows),), np.asarray(logits)) for logits in answer_logits))
    # The lowest score of a question's windows counts: one window with the answer is enough.
    lowest = np.full((len(answer_logits), len(windows.examples.questions)), _NO_WINDOW_ODDS)
    for row, logits in zip(lowest, answer_logits):
        np.minimum.at(row, windows.question_numbers, np.asarray(logits, np.float64))
    means = lowest.mean(axis=0).tolist()
    return {question.id: mean for question, mean in zip(windows.examples.questions, means)}


def decision_threshold(odds: Mapping[str, float], best: float) -> float:
    """A threshold that answers the same questions as `best`, halfway to the next question's odds.

    Odds 1, 2, 4 and best 2 -> 3. If no question with a window has higher odds: best + 1.
    """
    # The last bits of odds depend on batch and device, and no answer should depend on them.
    higher = [value for value in odds.values() if best < value < _NO_WINDOW_ODDS]
    return 0.5 * (best + min(higher, default=best + 2.0))


def answer_texts(
    answers: Mapping[str, Sequence[ScoredAnswer]],
    odds: Mapping[str, float] | None = None,
    threshold: float | None = None,
) -> dict[str, str]:
    """The answer to each question by its id, as the official scripts read it; "" for no answer.

    A question is answered if its null odds are at most the threshold. Without odds or threshold
    everything is answered.
    """
    if odds is None or threshold is None:
        return {name: best[0].text for name, best in answers.items()}
    # The reference requires odds below the threshold, and so excludes the question that set it.
    return {name: best[0].text if odds[name] <= threshold else "" for name, best in answers.items()}
