"""SQuAD 1.1 and 2.0: questions about a text, whose answers are parts of it.

A row of features is a window of a context, an example is a question; the windows of a question
compete for its answer.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import Predictions, Reader, StoredOutputs, Task
from albert_tf.finetuning.tasks.squad_answers import (
    ScoredAnswer,
    answer_texts,
    best_answers,
    decision_threshold,
    null_odds,
)
from albert_tf.finetuning.tasks.squad_candidates import (
    AnswerSettings,
    Candidates,
    candidates_from_beams,
    candidates_from_logits,
)
from albert_tf.finetuning.tasks.squad_scores import (
    Thresholds,
    best_thresholds,
    scores_v1,
    scores_v2,
)
from albert_tf.metrics import Scores
from albert_tf.models import AlbertSpanLabeler, AlbertSpanLabelerV2, objectives
from data_pipeline.files import atomic_files
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.squad_files import (
    Question,
    SquadExamples,
    SquadSplit,
    question_place,
    read_squad_file,
    read_squad_split,
)
from data_pipeline.finetuning.squad_windows import Windows, WindowSettings, make_windows
from data_pipeline.settings import setting
from data_pipeline.tokenizers.base import Tokenizer

THRESHOLD = "null_score_diff_threshold"  # A setting, and a score that models store.
_READ_V1, _READ_V2 = (functools.partial(read_squad_split, name) for name in ("1.1", "2.0"))


@dataclasses.dataclass(frozen=True)
class SquadSettings(AnswerSettings):
    """Settings of learning and answering."""

    null_score_diff_threshold: float | None = setting(
        None,
        "Highest null odds at which a question of SQuAD 2.0 is answered; by default those with the "
        "best F1 on the dev set, which are stored with the model. Without either, all questions "
        "are answered.",
        at_least=-1e9,
        expert=True,
    )
    # By default, windows without an answer are used, as for the reference's published models.
    only_windows_with_answer: bool = setting(
        False,
        "Train SQuAD 1.1 only on windows with the whole answer; by default others point at [CLS].",
        expert=True,
    )


class SquadAnswers(NamedTuple):
    """The data behind answers: the `details` of Predictions.

    Attributes:
      best: the best answers by id of the question, as if every question had one.
      odds: null odds by id; None: version 1.1.
      threshold: the highest odds at which a question is answered; None: all are answered.
      thresholds: the best ones, where the right answers are known.
    """

    best: dict[str, list[ScoredAnswer]]
    odds: dict[str, float] | None = None
    threshold: float | None = None
    thresholds: Thresholds | None = None


def window_settings(lengths: LengthSettings) -> WindowSettings:
    """Sizes of windows; UserError if these would not overlap, as with lengths for sentences."""
    settings = WindowSettings(lengths.max_seq_length, lengths.doc_stride, lengths.max_query_length)
    room = lengths.max_seq_length - lengths.max_query_length - 3  # [CLS] and two [SEP].
    if room < lengths.doc_stride:
        raise UserError(
            f"--max_seq_length={lengths.max_seq_length} has room for {room} pieces of the context "
            f"after a question of --max_query_length={lengths.max_query_length}, and windows that "
            f"begin every --doc_stride={lengths.doc_stride} would not overlap. Use "
            "--max_seq_length=384, as google-research/albert, or a smaller --doc_stride."
        )
    return settings


@dataclasses.dataclass(frozen=True, eq=False)
class SquadTask(Task[Windows]):
    """SQuAD 1.1: all questions have an answer."""

    _: dataclasses.KW_ONLY
    name: str = "squad1.1"
    reader: Reader = _READ_V1
    labels: tuple[str, ...] = ()
    file_reader: Reader = read_squad_file
    test_splits: tuple[str, ...] = ("predict",)
    settings: SquadSettings = SquadSettings()

    model_class = AlbertSpanLabeler
    example_type = Question
    objective: ClassVar[type] = objectives.SpanObjective
    rows_are_examples = False
    lengths = ("max_seq_length", "doc_stride", "max_query_length")
    uneven_outputs = Candidates._fields  # Models propose different numbers of spans.
    scores_are_percent = True
    metrics: ClassVar[tuple[str, ...]] = ("exact", "f1")
    key: ClassVar = "f1"
    outputs_with_pieces: ClassVar[tuple[str, ...]] = ("start_logits", "end_logits")

    def __post_init__(self) -> None:
        if self.settings.null_score_diff_threshold is not None:
            raise UserError(
                "--null_score_diff_threshold is for --task=squad2.0: all questions of version 1.1 "
                "have an answer. Leave it out."
            )

    @property
    def data_settings(self) -> Mapping[str, str | bool | None]:
        return {"only_windows_with_answer": self.settings.only_windows_with_answer}

    def check_answers(self, examples: SquadExamples) -> None:
        """Raises UserError if a question has no known answer."""
        unknown = [question for question in examples.questions if not question.answers]
        if unknown:
            place = question_place(examples.source, unknown[0].id)
            raise UserError(
                f"{place}: question {unknown[0].id} has no answer, and all questions of "
                "--task=squad1.1 need one. Use --task=squad2.0, or --mode=predict for questions "
                "whose answers are not known."
            )

    def features(
        self,
        split: Split,
        tokenizer: Tokenizer,
        lengths: LengthSettings,
        labels: Sequence[str],
        with_targets: bool = True,
    ) -> Features[Windows]:
        """A row is a window; the split "train" has positions as targets."""
        assert isinstance(split, SquadSplit)
        if with_targets:
            self.check_answers(split.content)
        # Predictions must not use the file's answers: version 2.0 would tune its threshold on them.
        content = split.content if with_targets else _without_answers(split.content)
        # Training needs positions as targets; dev is scored by texts, and needs none.
        training = with_targets and split.name == "train"
        windows = make_windows(content, tokenizer, window_settings(lengths), training)
        if windows.targets and self.settings.only_windows_with_answer:
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
        length, outputs = lengths.max_seq_length, self.outputs_with_pieces
        return Features(windows, windows.arrays, windows.sizes, length, targets, arrays, outputs)

    def head(self, labels: Sequence[str], dropout_rate: float) -> dict[str, float]:
        return {}

    def keep(self, features: Features[Windows], outputs: Mapping[str, np.ndarray]) -> StoredOutputs:
        """The fields of Candidates."""
        logits = outputs["start_logits"], outputs["end_logits"]
        return candidates_from_logits(features.source, *logits, self.settings)._asdict()

    def answer(self, features: Features[Windows], stored: Sequence[StoredOutputs]) -> Predictions:
        """The answer to each question in the order of the file, and SquadAnswers."""
        return _predictions(SquadAnswers(self.best_answers(features.source, stored)))

    def best_answers(
        self, windows: Windows, stored: Sequence[StoredOutputs]
    ) -> dict[str, list[ScoredAnswer]]:
        """The best answers by id of the question, as if every question had one."""
        spans = [Candidates(*(member[name] for name in Candidates._fields)) for member in stored]
        return best_answers(windows, spans, self.settings)

    def score(self, features: Features[Windows], predictions: Predictions) -> Scores:
        """In percent, by the official script of version 1.1."""
        scores = scores_v1(features.source.examples, _texts(features, predictions))
        return {name: scores[name] for name in self.metrics}

    def write(
        self,
        path: str,
        features: Features[Windows],
        labels: Sequence[str],
        predictions: Predictions,
    ) -> list[str]:
        """Writes JSON objects with an entry for each question's id.

            PATH_predictions.json        {"q1": "in Paris", "q2": ""}
            PATH_nbest_predictions.json  {"q1": [{"text": "in Paris", "probability": 0.9,
                                          "start_log_prob": 4.5, "end_log_prob": 5.0}, ...], ...}
            PATH_null_odds.json          {"q1": -3.2, "q2": 1.5}

        Version 2.0's official script takes the first and the last of them; version 1.1 has no odds.
        """
        answers: SquadAnswers = predictions.details
        best = {
            name: [each._asdict() for each in answered] for name, answered in answers.best.items()
        }
        contents = {"predictions": _texts(features, predictions), "nbest_predictions": best}
        if answers.odds is not None:
            contents["null_odds"] = answers.odds
        paths = {name: f"{path}_{name}.json" for name in contents}
        for name, content in contents.items():
            atomic_files.write_json(paths[name], content)
        return list(paths.values())


@dataclasses.dataclass(frozen=True, eq=False)
class SquadV2Task(SquadTask):
    """SQuAD 2.0: a question may have no answer in its context.

    A question is answered if its null odds are at most a threshold: that of the settings, or the
    one with the best F1 if the right answers are known. Models store theirs.
    """

    _: dataclasses.KW_ONLY
    name: str = "squad2.0"
    reader: Reader = _READ_V2

    model_class = AlbertSpanLabelerV2
    objective = objectives.SpanObjectiveV2
    metrics = (
        *SquadTask.metrics,
        *("HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1"),
        *(*Thresholds._fields, THRESHOLD),
    )
    outputs_with_pieces = ()  # The outputs are beams: no axis of pieces.

    def __post_init__(self) -> None:
        if self.settings.only_windows_with_answer:
            raise UserError(
                "--only_windows_with_answer is for --task=squad1.1: version 2.0 needs "
                "windows without an answer, to learn when to give none. Leave it out."
            )

    def check_answers(self, examples: SquadExamples) -> None:
        """Raises UserError if nothing is known about any question."""
        if not any(question.answers or question.is_impossible for question in examples.questions):
            raise UserError(
                f"{examples.source}: no question has an answer or is marked is_impossible. "
                "Use --mode=predict for questions whose answers are not known."
            )

    def head(self, labels: Sequence[str], dropout_rate: float) -> dict[str, float]:
        return {"dropout_rate": dropout_rate}

    @property
    def is_settled(self) -> bool:
        return self.settings.null_score_diff_threshold is not None

    def settled(self, scores: Scores) -> SquadV2Task:
        """The task with the threshold among a model's scores, unless the settings have one."""
        if self.is_settled or scores.get(THRESHOLD) is None:
            return self
        threshold = scores[THRESHOLD]
        settings = dataclasses.replace(self.settings, null_score_diff_threshold=threshold)
        return dataclasses.replace(self, settings=settings)

    def keep(self, features: Features[Windows], outputs: Mapping[str, np.ndarray]) -> StoredOutputs:
        """The fields of Candidates, and `answer_logits` float32 [F] of F windows."""
        found = candidates_from_beams(features.source, outputs, self.settings)
        return {**found._asdict(), "answer_logits": outputs["answer_logits"]}

    def answer(self, features: Features[Windows], stored: Sequence[StoredOutputs]) -> Predictions:
        """`SquadTask.answer`, but no answer if the null odds are above the threshold."""
        windows = features.source
        best = self.best_answers(windows, stored)
        odds = null_odds(windows, [member["answer_logits"] for member in stored])
        threshold, thresholds = self.settings.null_score_diff_threshold, None
        if any(each.answers or each.is_impossible for each in windows.examples.questions):
            thresholds = best_thresholds(windows.examples, answer_texts(best), odds)
            if threshold is None:
                threshold = decision_threshold(odds, thresholds.best_f1_thresh)
        return _predictions(SquadAnswers(best, odds, threshold, thresholds))

    def score(self, features: Features[Windows], predictions: Predictions) -> Scores:
        """In percent, by the official script of version 2.0; None for kinds of questions that the
        file does not have.

        exact and f1, also with HasAns_ and NoAns_, score the answers given with the threshold
        `null_score_diff_threshold`; best_exact and best_f1 are reached with the best thresholds.
        """
        answers: SquadAnswers = predictions.details
        assert answers.thresholds is not None  # The right answers are known.
        scores = {
            **scores_v2(features.source.examples, _texts(features, predictions)),
            **answers.thresholds._asdict(),
            THRESHOLD: answers.threshold,
        }
        return {name: scores.get(name) for name in self.metrics}


SQUAD_TASKS: dict[str, type[SquadTask]] = {"squad1.1": SquadTask, "squad2.0": SquadV2Task}


def _predictions(answers: SquadAnswers) -> Predictions:
    texts = answer_texts(answers.best, answers.odds, answers.threshold)
    return Predictions(list(texts.values()), details=answers)


def _texts(features: Features[Windows], predictions: Predictions) -> dict[str, str]:
    """Answers by the question's id."""
    questions = features.source.examples.questions
    return {question.id: text for question, text in zip(questions, predictions.values)}


def _without_answers(examples: SquadExamples) -> SquadExamples:
    questions = [q._replace(answers=(), is_impossible=False) for q in examples.questions]
    return examples._replace(questions=questions)
