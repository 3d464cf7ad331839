"""Questions with their contexts as model inputs: `[CLS] question [SEP] part of the context [SEP]`.

A context that is too long for the model is cut into overlapping windows.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import UserError
from data_pipeline.finetuning.alignment import AlignedPieces, align, piece_range
from data_pipeline.finetuning.encoded import SPECIAL_PIECES_OF_PAIR
from data_pipeline.finetuning.squad_files import Question, SquadExamples, question_place
from data_pipeline.tokenizers.base import Tokenizer


@dataclasses.dataclass(frozen=True)
class WindowSettings:
    """Sizes of windows, in pieces; google-research/albert's defaults.

    Attributes:
      max_seq_length: S, the longest input of the model.
      doc_stride: distance between the beginnings of two windows of a context.
      max_query_length: longest question; longer ones are cut at the end.
    """

    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) < 1:
                raise UserError(
                    f"{field.name} should be at least 1; received {getattr(self, field.name)}."
                )
        shortest = self.max_query_length + SPECIAL_PIECES_OF_PAIR + 1
        if self.max_seq_length < shortest:
            raise UserError(
                f"max_seq_length should be at least {shortest}, to fit a question of "
                f"max_query_length {self.max_query_length}, three special pieces and one of the "
                f"context; received {self.max_seq_length}."
            )


def context_spans(num_pieces: int, max_length: int, stride: int) -> list[tuple[int, int]]:
    """Start and length of each window of a context: 10 pieces, 6, 3 -> (0, 6), (3, 6), (6, 4)."""
    spans = []
    start = 0
    while start < num_pieces:
        length = min(num_pieces - start, max_length)
        spans.append((start, length))
        if start + length == num_pieces:
            break  # Another window would contain nothing new.
        # No piece is skipped between two windows, even with a long stride.
        start += min(length, stride)
    return spans


@functools.lru_cache(maxsize=1024)
def max_context(spans: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, ...]:
    """For each window, bool [length]: the pieces that have more context there than in any other.

    Windows (0, 6), (3, 6): piece 4 has min(4, 1) in the first and min(1, 4) in the second; as both
    are 1, the first wins.
    """
    # As in BERT, the score is the smaller number of pieces to the left and right, plus a hundredth
    # of the window's length, which prefers longer windows. Among equal scores, the first wins.
    highest = np.full(max(map(sum, spans)), -np.inf)
    best = np.zeros(len(highest), np.int32)
    for number, (start, length) in enumerate(spans):
        left, part = np.arange(length), slice(start, start + length)
        scores = np.minimum(left, left[::-1]) + 0.01 * length
        is_better = scores > highest[part]
        best[part][is_better], highest[part][is_better] = number, scores[is_better]
    return tuple(
        best[start : start + length] == number for number, (start, length) in enumerate(spans)
    )


class Targets(NamedTuple):
    """The targets of the windows.

    Attributes:
      start_positions, end_positions: int32 [F], first and last position of the answer in the
        window; 0, the position of [CLS], if the window does not contain the whole answer.
      is_impossible: int32 [F], 1 if the window does not contain the whole answer.
    """

    start_positions: np.ndarray
    end_positions: np.ndarray
    is_impossible: np.ndarray


# To save memory, the tokens of each question and paragraph are stored once, and windows are ranges
# of them. Arrays of the model's length are made on demand.
@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """All F windows of a file's questions, ordered by question and place in the context.

    Attributes:
      examples: the questions.
      settings: the sizes of windows.
      contexts: pieces of each paragraph.
      questions: int32 ids of each question, cut to max_query_length.
      question_numbers: int32 [F], index of the window's question in `examples.questions`. Questions
        whose context has no pieces have no window.
      starts: int32 [F], index of the context's first piece in the window.
      lengths: int32 [F], number of the context's pieces in the window.
      targets: None unless made for training.
      cls_id, sep_id: ids of [CLS] and [SEP].
    """

    examples: SquadExamples
    settings: WindowSettings
    contexts: Sequence[AlignedPieces]
    questions: Sequence[np.ndarray]
    question_numbers: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    targets: Targets | None
    cls_id: int
    sep_id: int

    def __len__(self) -> int:
        return len(self.starts)

    @functools.cached_property
    def offsets(self) -> np.ndarray:
        """int32 [F], position of the first piece of the context in each window."""
        sizes = np.array([len(ids) for ids in self.questions], np.int32)
        return sizes[self.question_numbers] + 2  # [CLS] and [SEP].

    def chosen(self, windows: np.ndarray) -> Windows:
        """Selects windows, int [B] in ascending order, for training."""
        # Not for answers: `max_context` would compare only the selected windows.
        targets = self.targets and Targets(*(values[windows] for values in self.targets))
        return dataclasses.replace(
            self,
            question_numbers=self.question_numbers[windows],
            starts=self.starts[windows],
            lengths=self.lengths[windows],
            targets=targets,
        )

    def question_of(self, window: int) -> Question:
        """The question of a window."""
        return self.examples.questions[self.question_numbers[window]]

    def context_of(self, window: int) -> AlignedPieces:
        """The pieces of the whole context of a window."""
        return self.contexts[self.question_of(window).context]

    @functools.cached_property
    def max_context(self) -> list[np.ndarray]:
        """bool [length] for each window: the pieces that have the most context in this window."""
        # Windows overlap, so an answer may start in several; it counts in only one of them.
        found: list[np.ndarray] = []
        ends = np.flatnonzero(np.diff(self.question_numbers, append=-1)) + 1
        for first, end in zip([0, *ends], ends):
            spans = tuple(zip(self.starts[first:end].tolist(), self.lengths[first:end].tolist()))
            found.extend(max_context(spans))
        return found

    @functools.cached_property
    def sizes(self) -> np.ndarray:
        """int64 [F], number of pieces of each window, including the question and special pieces."""
        return self.offsets.astype(np.int64) + self.lengths + 1

    def arrays(
        self, windows: Sequence[int] | np.ndarray | None = None, length: int | None = None
    ) -> dict[str, np.ndarray]:
        """Model inputs of the windows with these numbers (None: all), padded to L (None: S).

        Returns input_word_ids, input_mask, input_type_ids (1 for the context and the last [SEP])
        and impossible_positions (the reference's p_mask: 0 for [CLS] and the context, 1 elsewhere),
        int32 [B, L]; for training also the arrays of `Targets`, int32 [B].
        """
        chosen = np.arange(len(self)) if windows is None else np.asarray(windows)
        shape = len(chosen), length or self.settings.max_seq_length
        word_ids = np.zeros(shape, np.int32)
        mask, type_ids = np.zeros_like(word_ids), np.zeros_like(word_ids)
        impossible = np.ones_like(word_ids)
        impossible[:, 0] = 0
        word_ids[:, 0] = self.cls_id
        for row, window in enumerate(chosen):
            start, offset = self.starts[window], self.offsets[window]
            end = offset + self.lengths[window]
            word_ids[row, 1 : offset - 1] = self.questions[self.question_numbers[window]]
            word_ids[row, offset - 1] = word_ids[row, end] = self.sep_id
            word_ids[row, offset:end] = self.context_of(window).ids[start : start + end - offset]
            mask[row, : end + 1] = 1
            type_ids[row, offset : end + 1] = 1
            impossible[row, offset:end] = 0
        found = {
            "input_word_ids": word_ids,
            "input_mask": mask,
            "input_type_ids": type_ids,
            "impossible_positions": impossible,
        }
        if self.targets is None:
            return found
        return {**found, **{name: a[chosen] for name, a in self.targets._asdict().items()}}


def make_windows(
    examples: SquadExamples, tokenizer: Tokenizer, settings: WindowSettings, training: bool = False
) -> Windows:
    """Tokenizes a file and cuts it into windows; for training, the windows have `targets`."""
    # Each paragraph is tokenized once, regardless of its number of questions.
    contexts = [align(tokenizer, context) for context in examples.contexts]
    limit = settings.max_query_length
    asked = tokenizer.encode_batch([question.text for question in examples.questions])
    questions = [np.array(ids[:limit], np.int32) for ids in asked]
    columns: list[tuple[int, int, int]] = []
    targets: list[tuple[int, int, int]] = []
    for number, question in enumerate(examples.questions):
        pieces = contexts[question.context]
        room = settings.max_seq_length - len(questions[number]) - SPECIAL_PIECES_OF_PAIR
        spans = context_spans(len(pieces.ids), room, settings.doc_stride)
        columns += [(number, *span) for span in spans]
        if training:
            answer = answer_pieces(examples, question, pieces)
            offset = len(questions[number]) + 2
            targets += [_target(answer, *span, offset) for span in spans]
    if not columns:
        raise UserError(
            f"{examples.source}: no context has a piece after tokenization; is "
            f"{tokenizer.vocab_file} the vocabulary of this language?"
        )
    numbers, starts, lengths = np.array(columns, np.int32).T.copy()
    return Windows(
        examples,
        settings,
        contexts,
        questions,
        numbers,
        starts,
        lengths,
        Targets(*np.array(targets, np.int32).T.copy()) if training else None,
        tokenizer.cls_id,
        tokenizer.sep_id,
    )


def answer_pieces(
    examples: SquadExamples, question: Question, pieces: AlignedPieces
) -> tuple[int, int] | None:
    """First and last piece of the answer to learn; None if the question is impossible."""
    if question.is_impossible:
        return None
    answer = question.answers[0]
    first, last = piece_range(pieces, answer.start, answer.start + len(answer.text) - 1)
    if first > last:
        place = question_place(examples.source, question.id)
        raise UserError(
            f"{place}: question {question.id}: expected an answer of at least one piece; nothing "
            f"is left of {answer.text!r} after normalization. Remove the question."
        )
    return first, last


def _target(
    answer: tuple[int, int] | None, start: int, length: int, offset: int
) -> tuple[int, int, int]:
    """Start, end and is_impossible of a window.

    Pieces (7, 8), window from 5, offset 12 -> 14, 15, 0.
    """
    # A window without the whole answer points to [CLS], also in version 1.1: this is how the models
    # with published scores were trained.
    if answer is None or answer[0] < start or answer[1] >= start + length:
        return 0, 0, 1
    return answer[0] - start + offset, answer[1] - start + offset, 0
