"""SQuAD 1.1 and 2.0: questions about a text, whose answers are parts of it.

A row of features is a window of a context, an example is a question; the windows of a question
compete for its answer.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from albert_tf.errors import UserError
from albert_tf.finetuning.spec import FineTuning, Kept, Predictions
from albert_tf.finetuning.squad_answers import (
    ScoredAnswer,
    best_answers,
    decision_threshold,
    null_odds,
    predictions,
)
from albert_tf.finetuning.squad_candidates import (
    AnswerSettings,
    Candidates,
    candidates_from_beams,
    candidates_from_logits,
)
from albert_tf.finetuning.squad_scores import Thresholds, best_thresholds, scores_v1, scores_v2
from albert_tf.finetuning.squad_writers import write_answers
from albert_tf.metrics import Scores
from albert_tf.span_models import AlbertSpanLabeler, AlbertSpanLabelerV2
from albert_tf.tasks import SpanTask, SpanTaskV2
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.squad_files import (
    SquadExamples,
    SquadSplit,
    question_place,
    read_squad_file,
    read_squad_split,
)
from data_pipeline.finetuning.squad_windows import Windows, WindowSettings, make_windows
from data_pipeline.tokenizers.base import Tokenizer

# Task -> version of its files.
SQUAD_TASKS = {"squad1.1": "1.1", "squad2.0": "2.0"}
_SCORES_V1 = ("exact", "f1")
THRESHOLD = "null_score_diff_threshold"
_SCORES_V2 = (
    *_SCORES_V1,
    *("HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1"),
    *(*Thresholds._fields, THRESHOLD),
)


@dataclasses.dataclass(frozen=True)
class SquadSettings(AnswerSettings):
    """Settings of learning and answering; the first three fields are those of AnswerSettings.

    Attributes:
      null_score_diff_threshold: version 2.0: a question is answered if its null odds are at most
        this. None: the model's own or, where the right answers are known, the one that has the best
        F1; without either, everything is answered.
      only_windows_with_answer: version 1.1: nothing is trained on windows without the whole answer.
        Otherwise they point at [CLS], as in the reference, whose published scores were trained so.
    """

    null_score_diff_threshold: float | None = None
    only_windows_with_answer: bool = False


class SquadAnswers(NamedTuple):
    """The material of answers: the details of Predictions.

    Attributes:
      best: the best answers to each question by its id, as if each could be answered.
      odds: null odds by id; None: version 1.1.
      threshold: up to which odds a question is answered; None: all are.
      thresholds: the best ones, where the right answers are known.
    """

    best: dict[str, list[ScoredAnswer]]
    odds: dict[str, float] | None = None
    threshold: float | None = None
    thresholds: Thresholds | None = None


def squad(name: str, settings: SquadSettings | None = None) -> FineTuning:
    """SQuAD as a task.

    Args:
      name: "squad1.1" or "squad2.0".
      settings: None: the defaults, google-research/albert's.

    Raises:
      UserError: settings of the other version.
    """
    settings = settings or SquadSettings()
    version = SQUAD_TASKS[name]
    has_null = version == "2.0"
    finds_threshold = has_null and settings.null_score_diff_threshold is None
    if has_null and settings.only_windows_with_answer:
        raise UserError(
            "--only_windows_with_answer is for --task=squad1.1: version 2.0 learns from windows "
            "without an answer that there is none. Leave it out."
        )
    if not has_null and settings.null_score_diff_threshold is not None:
        raise UserError(
            "--null_score_diff_threshold is for --task=squad2.0: all questions of version 1.1 have "
            "an answer. Leave it out."
        )
    return FineTuning(
        name=name,
        reader=functools.partial(read_squad_split, version),
        file_reader=read_squad_file,
        featurizer=functools.partial(_features, version, settings),
        model=AlbertSpanLabelerV2 if has_null else AlbertSpanLabeler,
        task=SpanTaskV2 if has_null else SpanTask,
        keep=functools.partial(_keep_beams if has_null else _keep_spans, settings),
        decode=functools.partial(_decode, settings),
        scorer=_score_v2 if has_null else _score_v1,
        gold=None,
        metrics=_SCORES_V2 if has_null else _SCORES_V1,
        key="f1",
        write=_write,
        labels=(),
        test_splits=("predict",),
        data_settings={"only_windows_with_answer": settings.only_windows_with_answer},
        of_model=functools.partial(_with_threshold, settings) if finds_threshold else None,
    )


def _with_threshold(
    settings: SquadSettings, task: FineTuning, metadata: Mapping[str, Any]
) -> FineTuning:
    """The task with the threshold that a model's training found, if it found one."""
    found = metadata.get("metrics", {}).get(THRESHOLD)
    if found is None:
        return task
    settings = dataclasses.replace(settings, null_score_diff_threshold=found)
    return dataclasses.replace(task, decode=functools.partial(_decode, settings))


def window_settings(lengths: LengthSettings) -> WindowSettings:
    """Sizes of windows.

    Raises:
      UserError: windows would not overlap, as with the lengths that suit sentences.
    """
    settings = WindowSettings(lengths.max_seq_length, lengths.doc_stride, lengths.max_query_length)
    room = lengths.max_seq_length - lengths.max_query_length - 3
    if room < lengths.doc_stride:
        raise UserError(
            f"--max_seq_length={lengths.max_seq_length} has room for {room} pieces of the context "
            f"beside a question of --max_query_length={lengths.max_query_length}, and windows that "
            f"begin every --doc_stride={lengths.doc_stride} would not overlap. Use "
            "--max_seq_length=384, as google-research/albert, or a smaller --doc_stride."
        )
    return settings


def _features(
    version: str,
    settings: SquadSettings,
    split: SquadSplit,
    tokenizer: Tokenizer,
    lengths: LengthSettings,
    labels: Sequence[str],
    has_targets: bool,
) -> Features:
    """Windows as a model's inputs; positions as targets of the split "train".

    Args:
      version: of SQuAD.
      settings: which windows are trained on.
      split: questions.
      tokenizer: of the model.
      lengths: sizes of windows.
      labels: none.
      has_targets: False: nothing is known about the questions, whatever the file says.
    """
    if has_targets:
        _check_answers(version, split.content)
    content = split.content if has_targets else _without_answers(split.content)
    training = has_targets and split.name == "train"
    windows = make_windows(content, tokenizer, window_settings(lengths), training)
    if windows.targets and settings.only_windows_with_answer:
        (whole,) = np.nonzero(windows.targets.is_impossible == 0)
        if not len(whole):
            raise UserError(
                f"{split.source}: no window holds a whole answer. Leave "
                "--only_windows_with_answer out, or use a larger --max_seq_length."
            )
        windows = windows.chosen(whole)
    targets = windows.targets._asdict() if windows.targets else {}
    arrays = {
        "contexts": np.concatenate([pieces.ids for pieces in windows.contexts]),
        "questions": np.concatenate(windows.questions),
        "question_numbers": windows.question_numbers,
        "starts": windows.starts,
        "lengths": windows.lengths,
        **targets,
    }
    # Those of version 2.0 are beams: no axis of pieces.
    outputs = ("start_logits", "end_logits") if version == "1.1" else ()
    return Features(
        windows, windows.arrays, windows.sizes, lengths.max_seq_length, targets, arrays, outputs
    )


def _check_answers(version: str, examples: SquadExamples) -> None:
    """Raises UserError where the right answers to some questions are not known."""
    unknown = [question for question in examples.questions if not question.answers]
    if version == "1.1" and unknown:
        place = question_place(examples.source, unknown[0].id)
        raise UserError(
            f"{place}: question {unknown[0].id} has no answer, and all questions of "
            "--task=squad1.1 need one. Use --task=squad2.0, or --mode=predict for questions whose "
            "answers are not known."
        )
    if len(unknown) == len(examples.questions) and not any(q.is_impossible for q in unknown):
        raise UserError(
            f"{examples.source}: no question has an answer, nor is one marked is_impossible. Use "
            "--mode=predict for questions whose answers are not known."
        )


def _without_answers(examples: SquadExamples) -> SquadExamples:
    questions = [q._replace(answers=(), is_impossible=False) for q in examples.questions]
    return examples._replace(questions=questions)


def _keep_spans(
    settings: AnswerSettings, features: Features, outputs: dict[str, np.ndarray]
) -> Kept:
    """The fields of Candidates."""
    found = candidates_from_logits(
        features.examples, outputs["start_logits"], outputs["end_logits"], settings
    )
    return found._asdict()


def _keep_beams(
    settings: AnswerSettings, features: Features, outputs: dict[str, np.ndarray]
) -> Kept:
    """The fields of Candidates, and `answer_logits` float32 [F] of F windows."""
    found = candidates_from_beams(features.examples, outputs, settings)
    return {**found._asdict(), "answer_logits": outputs["answer_logits"]}


def _decode(settings: SquadSettings, features: Features, members: Sequence[Kept]) -> Predictions:
    """The answer to each question in the order of the file, and SquadAnswers."""
    windows: Windows = features.examples
    spans = [Candidates(*(member[name] for name in Candidates._fields)) for member in members]
    best = best_answers(windows, spans, settings)
    answers = SquadAnswers(best)
    if "answer_logits" in members[0]:
        odds = null_odds(windows, [member["answer_logits"] for member in members])
        threshold, thresholds = settings.null_score_diff_threshold, None
        if any(
            question.answers or question.is_impossible for question in windows.examples.questions
        ):
            thresholds = best_thresholds(windows.examples, predictions(best), odds)
            if threshold is None:
                threshold = decision_threshold(odds, thresholds.best_f1_thresh)
        answers = SquadAnswers(best, odds, threshold, thresholds)
    texts = predictions(best, answers.odds, answers.threshold)
    return Predictions(list(texts.values()), details=answers)


def _texts(features: Features, found: Predictions) -> dict[str, str]:
    """Answers by the question's id."""
    questions = features.examples.examples.questions
    return {question.id: text for question, text in zip(questions, found.values)}


def _score_v1(features: Features, found: Predictions) -> Scores:
    """In percent, by the official script of version 1.1."""
    scores = scores_v1(features.examples.examples, _texts(features, found))
    return {name: scores[name] for name in _SCORES_V1}


def _score_v2(features: Features, found: Predictions) -> Scores:
    """In percent, by the official script of version 2.0; None for kinds of questions that the file
    does not have.

    exact, f1 and what has HasAns_ and NoAns_ before it are of the answers as they are, with the
    threshold `null_score_diff_threshold`; best_exact and best_f1 are what the best ones reach.
    """
    details: SquadAnswers = found.details
    assert details.thresholds is not None  # The right answers are known.
    scores = {
        **scores_v2(features.examples.examples, _texts(features, found)),
        **details.thresholds._asdict(),
        THRESHOLD: details.threshold,
    }
    return {name: scores.get(name) for name in _SCORES_V2}


def _write(path: str, features: Features, labels: Sequence[str], found: Predictions) -> list[str]:
    """Writes the files of squad_writers.py; see `FineTuning.write`."""
    details: SquadAnswers = found.details
    return write_answers(path, _texts(features, found), details.best, details.odds)
