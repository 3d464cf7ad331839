"""Multiple choice: a context, a question and options -> which option fits.

Shapes: B batch, C options, S sequence.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from data_pipeline.finetuning.encoded import SPECIAL_PIECES_OF_PAIR
from data_pipeline.finetuning.examples import ChoiceExample, Split
from data_pipeline.finetuning.features import MAX_QA_LENGTH, LengthSettings
from data_pipeline.tokenizers.text_graph import keep
from export import finetuned
from export.graphs.checks import required, same_rows
from export.graphs.choices import fill_blanks, filled_bytes
from export.model_folder import LoadedModel
from export.probes import TEXTS, Expected, text_array
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    TOKENS,
    ModelModule,
    Signatures,
    Tensors,
    graph_function,
    in_slices,
    named,
)

_OPTIONS = tf.TensorSpec([None, None], tf.string, "options")
_CHOICE_TOKENS = tuple(tf.TensorSpec([None] * 3, tf.int32, spec.name) for spec in TOKENS)
MOST_FILLED_BYTES = 8 << 20
MOST_SEQUENCES = 4096  # In a request; each option is a sequence.
_NO_OPTION = -1e9  # The logit of an empty option; exp of it is 0.
_QUESTIONS = ("The largest is _ .", "Which symphony is it?", "what _ and _", "1,")
_CHOICES = ("two", "the ﬁrst, of Dvořák", "prices " * 40)


class MultipleChoiceModule(ModelModule):
    """A context, a question and options -> the best option, and probabilities."""

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(loaded)
        self._max_qa_length = longest_answer(loaded)

    @graph_function(input_signature=[named("context"), named("question"), _OPTIONS])
    def serve_text(self, context: tf.Tensor, question: tf.Tensor, options: tf.Tensor) -> Tensors:
        """The option that answers a question about a context, or fills the blank "_" in it: string
        [B] twice and [B, C] -> choice int32 [B], its index from 0; option string [B], its text;
        probabilities float32 [B, C].

        Rows with fewer options are padded with "", which is never chosen.
        """
        num_choices = tf.shape(options)[1]
        context, question, options = same_rows(context=context, question=question, options=options)
        options = required(options, num_choices > 0, "each row must have at least one option")
        options = required(
            options,
            tf.size(options) <= MOST_SEQUENCES,
            f"rows times options must be at most {MOST_SEQUENCES}: send fewer rows or options",
        )
        question = required(
            question,
            filled_bytes(question, options) <= MOST_FILLED_BYTES,
            f"the questions, with each of their options in each blank, must be at most "
            f"{MOST_FILLED_BYTES} bytes: send fewer rows or options",
        )
        answered = tf.reshape(fill_blanks(question, options), [-1])  # [B * C]
        last = self.text_encoder.tokenize(answered)
        lengths = last.row_lengths()
        kept = tf.minimum(lengths, self._max_qa_length)
        last = keep(last, lengths - kept, lengths)  # Keep the end, which has the option.
        rows = tf.repeat(tf.range(tf.size(context)), num_choices)
        first = self.text_encoder.tokenize(context)
        longest = self.text_encoder.max_seq_length
        first = keep(first, 0, tf.minimum(first.row_lengths(), longest))  # Before repeating it.
        first = tf.gather(first, rows)
        room = self.text_encoder.max_seq_length - SPECIAL_PIECES_OF_PAIR - kept
        first = keep(first, 0, tf.minimum(first.row_lengths(), room))
        packed = self.text_encoder.pack(first, last)
        # Each option is passed to the model as the only one, so rows can be computed in slices.
        logits = in_slices(
            lambda inputs: {"logits": self.forward(inputs)},
            {name: each[:, None] for name, each in packed.items()},
            {"logits": tf.TensorSpec([None, 1], tf.float32)},
        )["logits"]  # [B * C, 1]
        logits = tf.where(options == "", _NO_OPTION, tf.reshape(logits, tf.shape(options)))
        choice = tf.argmax(logits, axis=1, output_type=tf.int32)
        return {
            "choice": choice,
            "option": tf.gather(options, choice, batch_dims=1),
            "probabilities": tf.nn.softmax(logits),
        }

    @graph_function(input_signature=_CHOICE_TOKENS)
    def serve_tokens(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> Tensors:
        """int32 [B, C, S] -> logits, probabilities float32 [B, C]."""
        logits = self.forward(self.token_inputs(input_word_ids, input_mask, input_type_ids))
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}

    def signatures(self) -> Signatures:
        return {DEFAULT_SIGNATURE: self.serve_text, "tokens": self.serve_tokens}


def longest_answer(loaded: LoadedModel) -> int:
    """The most pieces of question plus option: as in training, but leaving room for a context."""
    most = loaded.metadata.get("max_qa_length") or MAX_QA_LENGTH
    return min(most, loaded.max_seq_length - SPECIAL_PIECES_OF_PAIR - 1)


def expected(loaded: LoadedModel) -> Expected:
    """The answers of fine-tuning to both signatures."""
    contexts = TEXTS[: len(_QUESTIONS)]
    examples = [
        ChoiceExample(str(row), context, question, _CHOICES, None, "", "probes", row)
        for row, (context, question) in enumerate(zip(contexts, _QUESTIONS))
    ]
    lengths = LengthSettings(loaded.max_seq_length, longest_answer(loaded))
    found = finetuned.answer(finetuned.CHOICES, loaded, Split("probes", examples), lengths)
    values, probabilities, _ = found.predictions
    by_text = {"probabilities": probabilities}
    if finetuned.are_decided(probabilities):
        by_text["choice"] = np.array(values)
        by_text["option"] = text_array([_CHOICES[value] for value in values])
    by_tokens = {"logits": found.outputs["logits"], "probabilities": probabilities}
    asked = {
        "context": text_array(contexts),
        "question": text_array(_QUESTIONS),
        "options": np.tile(text_array(_CHOICES), [len(contexts), 1]),
    }
    answers = {DEFAULT_SIGNATURE: by_text, "tokens": by_tokens}
    return Expected(answers, {**asked, **found.inputs})
