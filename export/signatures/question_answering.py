"""Question answering: a question and a context of any length -> parts of the context.

The graph (`export.graphs`) computes windows with a stride, the window in which a piece counts, and
the n best answers exactly as fine-tuning does. Offsets are positions in the user's original text.
Shapes: B batch, S sequence, N best answers.
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
from albert_tf.models import AlbertSpanLabelerV2
from data_pipeline.errors import UserError
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.squad_files import Question, SquadExamples, SquadSplit
from data_pipeline.finetuning.squad_windows import Windows, WindowSettings
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import align_graph
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
from export.probes import PLACES, TEXTS, Expected, places, text_array
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

N_BEST = 5  # Answers to return; probabilities are over the 20 that fine-tuning keeps.
_ANSWERS = AnswerSettings()
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
_ROUNDING = 2e-5  # Largest difference of log probabilities between two graphs by rounding.
# Random, so that no two windows are alike and every answer has a definite position.
_LONG_CONTEXT = " ".join(random.Random(0).choices(TEXTS[0].split(), k=400))


class QuestionAnsweringModule(ModelModule):
    """Questions and contexts -> answers with offsets; tokens -> the outputs of the model, an
    AlbertSpanLabeler (version 1.1) or AlbertSpanLabelerV2 (version 2.0).
    """

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(loaded)
        self._vocabulary = loaded.vocabulary
        self._windows, self._threshold = settings_of(loaded)
        model = loaded.model
        self._is_v2 = isinstance(model, AlbertSpanLabelerV2)
        # The beam search selects this many positions, so a sequence must have as many.
        self._shortest = max(model.span.start_n_top, model.span.end_n_top) if self._is_v2 else 1
        if self._is_v2:
            specs = [*TOKENS, tokens_spec("impossible_positions")]
            self.serve_tokens = graph_function(self._serve_tokens_v2, input_signature=specs)
        else:
            self.serve_tokens = graph_function(self._serve_tokens_v1, input_signature=TOKENS)

    @graph_function(input_signature=[named("question"), named("context")])
    def serve_text(self, question: tf.Tensor, context: tf.Tensor) -> Tensors:
        """string [B] twice -> answers, best first, with positions in the context: answer string,
        score float32 (its probability), start, end, byte_start, byte_end int32, all [B]; answers
        string, probabilities float32, starts, ends, byte_starts, byte_ends int32 [B, N], padded
        with "", 0 and -1; num_answers int32 [B]. Ends are exclusive.

        Version 2.0 also has null_score and, if the model has one, threshold float32 [B]. If the
        score exceeds it, the answer is "" from -1 to -1; `answers` still has the best spans.
        """
        question, context = same_rows(question=question, context=context)
        characters = Characters(context)
        pieces = align_graph(self.text_encoder.tokenizer, characters)
        windows = make_windows(
            self.text_encoder.tokenize(question),
            pieces.ids,
            self._vocabulary,
            self._windows,
            self._shortest,
        )
        if self._is_v2:
            outputs = in_slices(self.forward, windows.inputs, _BEAMS)
            spans = spans_of_beams(outputs)
        else:
            inputs = {spec.name: windows.inputs[spec.name] for spec in TOKENS}
            outputs = in_slices(self.forward, inputs, _LOGITS)
            spans = spans_of_logits(
                outputs["start_logits"], outputs["end_logits"], _ANSWERS.n_best_size
            )
        found = best_answers(windows, spans, characters, pieces, _ANSWERS)
        answer = _columns(found)
        if self._is_v2:
            null_score = null_scores(windows, outputs["answer_logits"])
            answer = _with_null(answer, null_score, self._threshold)
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
        an answer, regardless of impossible_positions.
        """
        inputs = self.token_inputs(input_word_ids, input_mask, input_type_ids, self._shortest)
        impossible = required(
            zero_or_one(impossible_positions, "impossible_positions"),
            tf.reduce_all(tf.shape(impossible_positions) == tf.shape(input_word_ids)),
            "impossible_positions must have the shape of input_word_ids",
        )
        impossible = tf.maximum(impossible, 1 - input_mask)
        return self.forward({**inputs, "impossible_positions": impossible})

    def signatures(self) -> Signatures:
        return {DEFAULT_SIGNATURE: self.serve_text, "tokens": self.serve_tokens}


def _columns(found: Answers) -> Tensors:
    """The best answer [B] and the N best answers [B, N], by output name."""

    def filled(values: tf.RaggedTensor, filler: Any) -> tf.Tensor:
        return values[:, :N_BEST].to_tensor(default_value=filler, shape=[None, N_BEST])

    many = {
        "answers": filled(found.texts, ""),
        "probabilities": filled(found.probabilities, 0.0),
        **{name: filled(getattr(found, name), -1) for name in PLACES},
    }
    names = ("answer", "score", "start", "end", "byte_start", "byte_end")
    best = {name: values[:, 0] for name, values in zip(names, many.values())}
    lengths = tf.cast(found.texts.row_lengths(), tf.int32)
    return {**best, **many, "num_answers": tf.minimum(lengths, N_BEST)}


def _with_null(answer: Tensors, null_score: tf.Tensor, threshold: float | None) -> Tensors:
    """Answers of version 2.0: no answer if the null score is above the threshold."""
    answer = {**answer, "null_score": null_score}
    if threshold is None:
        return answer
    # In float64, as in fine-tuning: float32 would round the threshold.
    is_answered = tf.cast(null_score, tf.float64) <= threshold
    answer["answer"] = tf.where(is_answered, answer["answer"], "")
    for name in ("start", "end", "byte_start", "byte_end"):
        answer[name] = tf.where(is_answered, answer[name], -1)
    return {**answer, "threshold": tf.fill(tf.shape(null_score), threshold)}


def settings_of(loaded: LoadedModel) -> tuple[WindowSettings, float | None]:
    """The window settings of training, and the threshold of version 2.0: a question is answered if
    its null score is at most this; None: always.
    """
    defaults = WindowSettings()
    metadata = loaded.metadata
    longest_question = metadata.get("max_query_length", defaults.max_query_length)
    room = loaded.max_seq_length - longest_question - 3  # [CLS] and two [SEP].
    if room < 1:
        raise UserError(
            f"--max_seq_length={loaded.max_seq_length} has no room for a context after a question "
            f"of {longest_question} pieces, as in training. Use at least {longest_question + 4}."
        )
    # Windows must still overlap if the export has shorter sequences.
    stride = min(metadata.get("doc_stride", defaults.doc_stride), room)
    windows = WindowSettings(loaded.max_seq_length, stride, longest_question)
    return windows, metadata.get("metrics", {}).get(THRESHOLD)


def expected(loaded: LoadedModel) -> Expected:
    """The answers of fine-tuning to both signatures, unless rounding could decide."""
    windows, threshold = settings_of(loaded)
    contexts = [*(text for text in TEXTS[:-1] if text.strip()), _LONG_CONTEXT]
    questions = [
        Question(str(row), text, row, (), False)
        for row, text in enumerate(_QUESTIONS[: len(contexts)])
    ]
    is_v2 = isinstance(loaded.model, AlbertSpanLabelerV2)
    task = SQUAD_TASKS["squad2.0" if is_v2 else "squad1.1"](
        settings=SquadSettings(null_score_diff_threshold=threshold)
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
