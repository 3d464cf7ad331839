"""Question answering: a question and a context of any length -> parts of the context.

The graph (`export.graphs`) computes windows with a stride, the window in which a piece counts, and
the n best answers exactly as fine-tuning does. Offsets are positions in the user's original text.
Shapes: B batch, S sequence, N best answers.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.finetuning.tasks.squad import THRESHOLD
from albert_tf.finetuning.tasks.squad_candidates import AnswerSettings
from albert_tf.models import AlbertSpanLabelerV2
from data_pipeline.errors import UserError
from data_pipeline.finetuning.squad_windows import WindowSettings
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import align_graph
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
from export.probes import PLACES
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
MOST_WINDOWS = 512  # Per request: more would take minutes.
_ANSWERS = AnswerSettings()
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
            # Refuses a request before its windows take memory.
            lambda counts: required(counts, tf.reduce_sum(counts) <= MOST_WINDOWS, _TOO_LONG),
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
