"""Expected answers of question answering: those of fine-tuning, unless rounding could decide."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

import numpy as np

from albert_tf.finetuning.tasks.base import Predictions
from albert_tf.finetuning.tasks.squad import SQUAD_TASKS, SquadSettings
from albert_tf.finetuning.tasks.squad_answers import NO_CANDIDATE_SCORE, ScoredAnswer, answer_span
from albert_tf.finetuning.tasks.squad_candidates import Candidates
from albert_tf.models import AlbertSpanLabelerV2
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.squad_files import Question, SquadExamples, SquadSplit
from data_pipeline.finetuning.squad_windows import Windows
from export import finetuned
from export.model_folder import LoadedModel
from export.probes import PLACES, TEXTS, Expected, places, text_array
from export.signatures.common import DEFAULT_SIGNATURE
from export.signatures.question_answering import N_BEST, settings_of

_QUESTIONS = (
    "Who returns the largest?",
    "Café?",
    "what",
    "In which year did prices rise?",
    "",
    "?",
)
_ROUNDING = 2e-5  # Largest difference of log probabilities between two graphs by rounding.
# Random, so that no two windows are alike and every answer has a definite position.
_LONG_CONTEXT = " ".join(random.Random(0).choices(TEXTS[0].split(), k=400))


def expected(loaded: LoadedModel) -> Expected:
    """The answers of fine-tuning to both signatures of QuestionAnsweringModule."""
    windows, threshold = settings_of(loaded)
    contexts = [*(text for text in TEXTS[:-1] if text.strip()), _LONG_CONTEXT]
    questions = [
        Question(str(row), text, row, (), False)
        for row, text in enumerate(_QUESTIONS[: len(contexts)])
    ]
    is_v2 = isinstance(loaded.model, AlbertSpanLabelerV2)
    task = SQUAD_TASKS["squad2.0" if is_v2 else "squad1.1"](
        settings=SquadSettings(null_score_diff_threshold=threshold),
    )
    lengths = LengthSettings(**dataclasses.asdict(windows))
    split = SquadSplit("probes", questions, content=SquadExamples("probes", contexts, questions))
    found = finetuned.answer(task, loaded, split, lengths)
    answers = found.predictions.details
    by_text = _by_text(answers.best, found.predictions.values)
    if "answers" in by_text:
        candidates = Candidates(*(found.stored[name] for name in Candidates._fields))
        by_text |= _places_of_answers(found.features.source, candidates, found.predictions)
    if is_v2:
        by_text["null_score"] = np.array(list(answers.odds.values()), np.float32)
    asked = {
        "question": text_array([question.text for question in questions]),
        "context": text_array(contexts),
    }
    outputs = finetuned.outputs_of(loaded.model, found.inputs)
    by_tokens = decided_beams(outputs) if is_v2 else outputs
    return Expected({DEFAULT_SIGNATURE: by_text, "tokens": by_tokens}, {**asked, **found.inputs})


def decided_beams(outputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a SQuAD 2.0 model without those whose order rounding may change.

    Beams are sorted by score, and ends belong to their starts. So close start scores make the order
    of starts uncertain, and close end scores that of ends.
    """
    starts = outputs["start_top_log_probs"]  # [B, K]
    ends = outputs["end_top_log_probs"].reshape(*starts.shape, -1)  # [B, K, J]
    undecided: set[str] = set()
    if _has_close(starts):
        undecided = {"start_top_index", "end_top_index", "end_top_log_probs"}
    elif _has_close(ends):
        undecided = {"end_top_index"}
    return {name: value for name, value in outputs.items() if name not in undecided}


def _has_close(log_probs: np.ndarray) -> bool:
    """Whether rounding could swap two neighbors in a descending row; ignores impossible ones."""
    is_possible = log_probs[..., 1:] > NO_CANDIDATE_SCORE
    return bool((-np.diff(log_probs)[is_possible] < _ROUNDING).any())


def _by_text(
    best: Mapping[str, Sequence[ScoredAnswer]], texts: Sequence[str]
) -> dict[str, np.ndarray]:
    """The answers of fine-tuning by output name; texts only if no two scores are close."""
    probabilities = np.zeros([len(best), N_BEST], np.float32)
    answers = np.full(probabilities.shape, b"", dtype=object)
    num_answers = np.zeros([len(best)], np.int32)
    has_ties = False
    for row, found in enumerate(best.values()):
        # One more than is returned, because the last one and the next may be close.
        scores = np.array([each.start_log_prob + each.end_log_prob for each in found[: N_BEST + 1]])
        has_ties |= bool((np.abs(np.diff(scores)) < finetuned.TIE).any())
        for column, each in enumerate(found[:N_BEST]):
            if scores[0] > NO_CANDIDATE_SCORE:  # Otherwise there is no candidate.
                answers[row, column] = each.text.encode()
                probabilities[row, column] = each.probability
                num_answers[row] += 1
    outputs = {"probabilities": probabilities, "num_answers": num_answers}
    if not has_ties:  # Answers with nearly equal scores may come in either order.
        outputs |= {"answers": answers, "answer": text_array(texts)}
    return outputs


def _places_of_answers(
    windows: Windows, candidates: Candidates, found: Predictions
) -> dict[str, np.ndarray]:
    """The positions of the answers of fine-tuning; {} if one of them is uncertain.

    If a text occurs at several positions, the one with the highest score counts; if two scores are
    close, either is correct. The position of an answer of only white space is uncertain.
    """
    contexts: list[str] = []
    spans: list[list[tuple[int, int]]] = []
    answers = found.details.best.values()
    for row, (question, best) in enumerate(zip(windows.examples.questions, answers)):
        contexts.append(windows.examples.contexts[question.context])
        spans.append([])
        scores = _scores_of_spans(windows, candidates, row)
        for each in best[:N_BEST] if scores else ():
            where = [span for span in scores if contexts[row][slice(*span)] == each.text]
            first, *others = sorted(where, key=scores.__getitem__, reverse=True)
            if not each.text or (others and scores[first] - scores[others[0]] < finetuned.TIE):
                return {}
            spans[row].append(first)
    many = places(contexts, spans, N_BEST)
    is_answered = np.array([bool(text) for text in found.values])
    one = {name[:-1]: np.where(is_answered, many[name][:, 0], -1) for name in PLACES}
    return many | one


def _scores_of_spans(
    windows: Windows, candidates: Candidates, question: int
) -> dict[tuple[int, int], float]:
    """The highest score of each character span that can answer a question."""
    scores: dict[tuple[int, int], float] = {}
    for number in np.flatnonzero(windows.question_numbers[candidates.windows] == question):
        window, first, last, *both = (column[number] for column in candidates)
        span = answer_span(windows, window, first, last)
        scores[span] = max(float(sum(both)), scores.get(span, -np.inf))
    return scores
