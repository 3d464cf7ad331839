"""Question answering: a question and a context of any length -> parts of the context.

Windows with a stride, the window in which a piece counts, and the n best answers are in the graph,
equal to those of `albert_tf.finetuning.tasks.squad_answers`. Offsets are places in the user's own
text. Shapes: B batch, S sequence, N best answers.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.finetuning.tasks.base import Predictions
from albert_tf.finetuning.tasks.squad import SQUAD_TASKS, THRESHOLD, SquadSettings
from albert_tf.finetuning.tasks.squad_answers import NO_CANDIDATE_SCORE, ScoredAnswer, answer_span
from albert_tf.finetuning.tasks.squad_candidates import AnswerSettings, Candidates
from albert_tf.models import AlbertSpanLabeler, AlbertSpanLabelerV2
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.squad_files import Question, SquadExamples, SquadSplit
from data_pipeline.finetuning.squad_windows import Windows, WindowSettings
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import align_graph
from data_pipeline.tokenizers.text_graph import TextEncoder
from export import finetuned
from export.graphs.answers import (
    Answers,
    best_answers,
    null_scores,
    spans_of_beams,
    spans_of_logits,
)
from export.graphs.checks import required, same_rows, zero_or_one
from export.graphs.windows import make_windows
from export.model_folder import LoadedModel
from export.probes import PLACES, TEXTS, Export, Probe, places, text_array
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    TOKENS,
    ModelModule,
    Signatures,
    Tensors,
    graph_function,
    in_slices,
    named,
    tokens_spec,
)

N_BEST = 5  # Answers that are served; the probabilities are of the 20 that fine-tuning keeps.
MOST_WINDOWS = 512  # Of a request: more would take minutes.
_TOO_LONG = (
    f"the contexts make more than {MOST_WINDOWS} windows: send fewer questions at once, or shorter "
    "contexts"
)
_SCORES, _POSITIONS = (tf.TensorSpec([None, None], dtype) for dtype in (tf.float32, tf.int32))
_LOGITS = {"start_logits": _SCORES, "end_logits": _SCORES}
_BEAMS = {
    "start_top_index": _POSITIONS,
    "start_top_log_probs": _SCORES,
    "end_top_index": _POSITIONS,
    "end_top_log_probs": _SCORES,
    "answer_logits": tf.TensorSpec([None], tf.float32),
}
_QUESTIONS = (
    "Who returns the largest?",
    "Café?",
    "what",
    "In which year did prices rise?",
    "",
    "?",
)
_ROUNDING = 2e-5  # Log probabilities of two graphs, each off by what an export may be.
# No two windows of it are alike: the places of answers in it are decided.
_LONG_CONTEXT = " ".join(random.Random(0).choices(TEXTS[0].split(), k=400))

Model = AlbertSpanLabeler | AlbertSpanLabelerV2


@dataclasses.dataclass(frozen=True)
class QuestionSettings:
    """The settings of answering questions.

    Attributes:
      windows: sizes of windows, as in training.
      answers: which spans are answers.
      threshold: version 2.0: a question is answered if its null score is at most this; None: every
        question is.
    """

    windows: WindowSettings
    answers: AnswerSettings
    threshold: float | None = None


class QuestionAnsweringModule(ModelModule):
    """Questions and contexts -> answers with offsets; tokens -> what the model says.

    Args:
      model: of version 1.1 or 2.0.
      text: tokenizer.
      vocabulary: the same tokenizer in Python.
      settings: how questions are answered.
      files: paths of the files to carry along as assets.
    """

    def __init__(
        self,
        model: Model,
        text: TextEncoder,
        vocabulary: Tokenizer,
        settings: QuestionSettings,
        files: Sequence[str],
    ) -> None:
        super().__init__("question_answering", model, files)
        self.text_encoder = text
        self._vocabulary = vocabulary
        self._settings = settings
        self._is_v2 = isinstance(model, AlbertSpanLabelerV2)
        self._shortest = max(model.span.start_n_top, model.span.end_n_top) if self._is_v2 else 1
        if self._is_v2:
            specs = [*TOKENS, tokens_spec("impossible_positions")]
            self.serve_tokens = graph_function(self._serve_tokens_v2, input_signature=specs)
        else:
            self.serve_tokens = graph_function(self._serve_tokens_v1, input_signature=TOKENS)

    @graph_function(input_signature=[named("question"), named("context")])
    def serve_text(self, question: tf.Tensor, context: tf.Tensor) -> Tensors:
        """string [B] twice -> answers, best first, with their places in the context.

        Returns:
          answer string, score float32 (its probability), start, end, byte_start, byte_end int32,
          all [B]; answers string, probabilities float32, starts, ends, byte_starts, byte_ends int32
          [B, N], filled with "", 0 and -1; num_answers int32 [B]. Ends are excluded. Of version 2.0
          also null_score and, if the model has one, threshold float32 [B]: above it the answer is
          "" from -1 to -1, and `answers` are those there would be.
        """
        question, context = same_rows(question=question, context=context)
        characters = Characters(context)
        pieces = align_graph(self.text_encoder.tokenizer, characters)
        settings = self._settings
        windows = make_windows(
            self.text_encoder.tokenize(question),
            pieces.ids,
            self._vocabulary,
            settings.windows,
            self._shortest,
            lambda counts: required(counts, tf.reduce_sum(counts) <= MOST_WINDOWS, _TOO_LONG),
        )
        if self._is_v2:
            outputs = in_slices(self.forward, windows.inputs, _BEAMS)
            spans = spans_of_beams(outputs)
        else:
            inputs = {spec.name: windows.inputs[spec.name] for spec in TOKENS}
            outputs = in_slices(self.forward, inputs, _LOGITS)
            spans = spans_of_logits(
                outputs["start_logits"], outputs["end_logits"], settings.answers.n_best_size
            )
        found = best_answers(windows, spans, characters, pieces, settings.answers)
        answer = _columns(found)
        if self._is_v2:
            null_score = null_scores(windows, outputs["answer_logits"])
            answer = _with_null(answer, null_score, settings.threshold)
        return answer

    def _serve_tokens_v1(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> Tensors:
        """int32 [B, S] -> start_logits, end_logits float32 [B, S]."""
        return self.forward(self.token_inputs(input_word_ids, input_mask, input_type_ids))

    def _serve_tokens_v2(
        self,
        input_word_ids: tf.Tensor,
        input_mask: tf.Tensor,
        input_type_ids: tf.Tensor,
        impossible_positions: tf.Tensor,
    ) -> Tensors:
        """int32 [B, S] -> the beams of `SpanHead`, and answer_logits float32 [B]. Padding is never
        an answer, whatever impossible_positions say of it.
        """
        inputs = self.token_inputs(input_word_ids, input_mask, input_type_ids, self._shortest)
        impossible = required(
            zero_or_one(impossible_positions, "impossible_positions"),
            tf.reduce_all(tf.shape(impossible_positions) == tf.shape(input_word_ids)),
            "impossible_positions has the shape of input_word_ids",
        )
        impossible = tf.maximum(impossible, 1 - input_mask)
        return self.forward({**inputs, "impossible_positions": impossible})

    def signatures(self) -> Signatures:
        """The functions to save, by the names of their signatures."""
        return {DEFAULT_SIGNATURE: self.serve_text, "tokens": self.serve_tokens}


def _columns(found: Answers) -> Tensors:
    """The best answer [B] and the N best [B, N], by the names of the outputs."""

    def filled(values: tf.RaggedTensor, filler: Any) -> tf.Tensor:
        return values[:, :N_BEST].to_tensor(default_value=filler, shape=[None, N_BEST])

    many = {
        "answers": filled(found.texts, ""),
        "probabilities": filled(found.probabilities, 0.0),
        "starts": filled(found.starts, -1),
        "ends": filled(found.ends, -1),
        "byte_starts": filled(found.byte_starts, -1),
        "byte_ends": filled(found.byte_ends, -1),
    }
    names = ("answer", "score", "start", "end", "byte_start", "byte_end")
    best = {name: values[:, 0] for name, values in zip(names, many.values())}
    lengths = tf.cast(found.texts.row_lengths(), tf.int32)
    return {**best, **many, "num_answers": tf.minimum(lengths, N_BEST)}


def _with_null(answer: Tensors, null_score: tf.Tensor, threshold: float | None) -> Tensors:
    """Answers of version 2.0: none where the null score is above the threshold."""
    answer = {**answer, "null_score": null_score}
    if threshold is None:
        return answer
    is_answered = tf.cast(null_score, tf.float64) <= threshold
    answer["answer"] = tf.where(is_answered, answer["answer"], "")
    for name in ("start", "end", "byte_start", "byte_end"):
        answer[name] = tf.where(is_answered, answer[name], -1)
    return {**answer, "threshold": tf.fill(tf.shape(null_score), threshold)}


def question_probes(model: Model, vocabulary: Tokenizer, settings: QuestionSettings) -> list[Probe]:
    """Probes of both signatures, with the answers of the fine-tuning path.

    Args:
      model: the model in Keras.
      vocabulary: the Python tokenizer.
      settings: how questions are answered.

    Returns:
      One probe for each signature.
    """
    contexts = [*(text for text in TEXTS[:-1] if text.strip()), _LONG_CONTEXT]
    questions = [
        Question(str(row), text, row, (), False)
        for row, text in enumerate(_QUESTIONS[: len(contexts)])
    ]
    is_v2 = isinstance(model, AlbertSpanLabelerV2)
    task = SQUAD_TASKS["squad2.0" if is_v2 else "squad1.1"](
        settings=SquadSettings(
            **dataclasses.asdict(settings.answers), null_score_diff_threshold=settings.threshold
        ),
    )
    windows = settings.windows
    lengths = LengthSettings(
        windows.max_seq_length,
        doc_stride=windows.doc_stride,
        max_query_length=windows.max_query_length,
    )
    split = SquadSplit("probes", questions, content=SquadExamples("probes", contexts, questions))
    found = finetuned.answer(task, model, vocabulary, split, lengths)
    answers = found.predictions.details
    expected = _expected(answers.best, found.predictions.values)
    if "answers" in expected:
        candidates = Candidates(*(found.stored[name] for name in Candidates._fields))
        expected |= _expected_places(found.features.source, candidates, found.predictions)
    if is_v2:
        expected["null_score"] = np.array(list(answers.odds.values()), np.float32)
    asked = {
        "question": text_array([question.text for question in questions]),
        "context": text_array(contexts),
    }
    names = [*(spec.name for spec in TOKENS), *(["impossible_positions"] if is_v2 else [])]
    tokens = {name: found.inputs[name] for name in names}
    outputs = finetuned.outputs_of(model, tokens)
    return [
        Probe(DEFAULT_SIGNATURE, asked, expected),
        Probe("tokens", tokens, decided_beams(outputs) if is_v2 else outputs),
    ]


def decided_beams(outputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a SQuAD 2.0 model without those that rounding may put in another order.

    A beam is in the order of its scores, and ends follow their starts: close scores of starts leave
    starts, close scores of ends leave ends undecided.
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
    """Whether two neighbors in a row that falls could change places; impossible ones stay."""
    is_possible = log_probs[..., 1:] > NO_CANDIDATE_SCORE
    return bool((-np.diff(log_probs)[is_possible] < _ROUNDING).any())


def _expected(
    best: Mapping[str, Sequence[ScoredAnswer]], texts: Sequence[str]
) -> dict[str, np.ndarray]:
    """The outputs that the answers of fine-tuning mean; texts only where no two scores are close.

    Answers of scores that differ by rounding may change places, and neither order is wrong.
    """
    probabilities = np.zeros([len(best), N_BEST], np.float32)
    answers = np.full(probabilities.shape, b"", dtype=object)
    num_answers = np.zeros([len(best)], np.int32)
    has_ties = False
    for row, found in enumerate(best.values()):
        scores = np.array([each.start_log_prob + each.end_log_prob for each in found[: N_BEST + 1]])
        has_ties |= bool((np.abs(np.diff(scores)) < finetuned.TIE).any())
        for column, each in enumerate(found[:N_BEST]):
            if scores[0] > NO_CANDIDATE_SCORE:  # Otherwise there is no candidate.
                answers[row, column] = each.text.encode()
                probabilities[row, column] = each.probability
                num_answers[row] += 1
    expected = {"probabilities": probabilities, "num_answers": num_answers}
    if not has_ties:
        expected["answers"] = answers
        expected["answer"] = text_array(texts)
    return expected


def _expected_places(
    windows: Windows, candidates: Candidates, found: Predictions
) -> dict[str, np.ndarray]:
    """The places that the answers of fine-tuning mean; {} if one of them is not decided.

    Of the places where a text stands the one with the highest score counts; if two scores are
    close, neither is wrong. An answer of nothing but white space may stand anywhere in it.
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
    """The highest score of each span of characters that can be the answer to a question."""
    scores: dict[tuple[int, int], float] = {}
    for number in np.flatnonzero(windows.question_numbers[candidates.windows] == question):
        window, first, last, *both = (column[number] for column in candidates)
        span = answer_span(windows, window, first, last)
        scores[span] = max(float(sum(both)), scores.get(span, -np.inf))
    return scores


def settings_of(loaded: LoadedModel) -> QuestionSettings:
    """The settings of answering with a model: the sizes and the threshold of training."""
    defaults = WindowSettings()
    metadata = loaded.metadata
    windows = WindowSettings(
        loaded.max_seq_length,
        metadata.get("doc_stride", defaults.doc_stride),
        metadata.get("max_query_length", defaults.max_query_length),
    )
    threshold = metadata.get("metrics", {}).get(THRESHOLD)
    return QuestionSettings(windows, AnswerSettings(), threshold)


def export(loaded: LoadedModel) -> Export:
    """The module of a question answering model, and its probes."""
    settings = settings_of(loaded)
    module = QuestionAnsweringModule(
        loaded.model, loaded.text_encoder(), loaded.vocabulary, settings, loaded.files()
    )
    return module, question_probes(loaded.model, loaded.vocabulary, settings)
