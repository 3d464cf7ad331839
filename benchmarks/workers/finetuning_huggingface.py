"""Code shared by both Hugging Face fine-tuning workers: tokenization, batches, answer spans.

It follows Hugging Face's own example scripts: a fast tokenizer in `Dataset.map`, batches padded to
their longest sequence.
"""

from __future__ import annotations

import collections

import finetuning_data
import numpy as np
from datasets import Dataset
from transformers import AlbertConfig, AlbertTokenizerFast

_STRIDE, _BEST, _LONGEST_ANSWER = 128, 20, 30
_MODEL_INPUTS = ("input_ids", "token_type_ids", "attention_mask")
CLASS_NAMES = {
    "sst-2": "SequenceClassification",
    "mrpc": "SequenceClassification",
    "squad1.1": "QuestionAnswering",
    "race": "MultipleChoice",
}


def make_config(case: dict) -> AlbertConfig:
    """The architecture, with the same dropout before the output layer as all libraries."""
    return AlbertConfig(**case["config"], num_labels=2, classifier_dropout_prob=case["dropout"])


class Data:
    """A split as features of a task.

    Attributes:
      rows: the examples.
      features: Dataset with the model's inputs and, for training, targets. A row is an example, or
        for SQuAD a window of one.
      places: for SQuAD, for each window, (index of its question, offsets of its pieces in the
        context, or None for pieces of the question).
    """

    def __init__(self, case: dict, split: str, tokenizer: AlbertTokenizerFast) -> None:
        self._case, self._split, self._tokenizer = case, split, tokenizer
        self.rows = finetuning_data.read_rows(case, split)
        self.places: list[tuple[int, list]] = []
        examples = Dataset.from_list(self.rows)
        function = {"squad1.1": self._windows, "race": self._choices}.get(case["task"], self._texts)
        self.features = examples.map(
            function, batched=True, with_indices=True, remove_columns=examples.column_names
        )

    def _texts(self, batch: dict, _: list[int]) -> dict:
        pairs = [batch["pair"]] if self._case["task"] == "mrpc" else []
        found = self._tokenizer(
            batch["text"], *pairs, truncation=True, max_length=self._case["max_seq_length"]
        )
        return {**found, "labels": batch["label"]}

    def _choices(self, batch: dict, _: list[int]) -> dict:
        articles = [text for text in batch["article"] for _ in range(4)]
        endings = [text for texts in batch["endings"] for text in texts]
        found = self._tokenizer(
            articles, endings, truncation="only_first", max_length=self._case["max_seq_length"]
        )
        grouped = {
            name: [values[place : place + 4] for place in range(0, len(values), 4)]
            for name, values in found.items()
        }
        return {**grouped, "labels": batch["label"]}

    def _windows(self, batch: dict, numbers: list[int]) -> dict:
        found = self._tokenizer(
            batch["question"],
            batch["context"],
            truncation="only_second",
            max_length=self._case["max_seq_length"],
            stride=_STRIDE,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        samples, offsets = found.pop("overflow_to_sample_mapping"), found.pop("offset_mapping")
        starts, ends = [], []
        for window, (sample, pieces) in enumerate(zip(samples, offsets)):
            in_context = [number == 1 for number in found.sequence_ids(window)]
            if self._split == "train":
                first = batch["start"][sample]
                span = (first, first + len(batch["answers"][sample][0]))
                start, end = _target(pieces, in_context, span)
                starts.append(start)
                ends.append(end)
            else:
                shown = [place if inside else None for place, inside in zip(pieces, in_context)]
                self.places.append((numbers[sample], shown))
        targets = {"start_positions": starts, "end_positions": ends} if starts else {}
        return {**{name: found[name] for name in _MODEL_INPUTS}, **targets}

    def score(self, outputs: np.ndarray | tuple[np.ndarray, np.ndarray]) -> float:
        """Accuracy from logits [N, C], or F1 from start and end logits [F, L] of all windows."""
        if self._case["task"] != "squad1.1":
            return float(np.mean(np.argmax(outputs, -1) == [row["label"] for row in self.rows]))
        best: dict[int, tuple[float, str]] = collections.defaultdict(lambda: (-np.inf, ""))
        for (number, places), start, end in zip(self.places, *outputs):
            found = _best_span(places, start, end)
            if found and found[0] > best[number][0]:
                best[number] = found[0], self.rows[number]["context"][found[1] : found[2]]
        predicted = {row["id"]: best[number][1] for number, row in enumerate(self.rows)}
        return finetuning_data.f1(predicted, self.rows)


def _target(pieces: list, in_context: list[bool], span: tuple[int, int]) -> tuple[int, int]:
    """Positions of the first and last piece of a character span; 0, 0 if the window lacks it."""
    inside = [place for place, is_context in enumerate(in_context) if is_context]
    if not inside or pieces[inside[0]][0] > span[0] or pieces[inside[-1]][1] < span[1]:
        return 0, 0
    start = max(place for place in inside if pieces[place][0] <= span[0])
    end = min(place for place in inside if pieces[place][1] >= span[1])
    return start, end


def _best_span(places: list, start: np.ndarray, end: np.ndarray) -> tuple[float, int, int] | None:
    """The score and character span of the most likely span of a window, only in the context."""
    found = []
    for first in np.argsort(start)[-_BEST:]:
        for last in np.argsort(end)[-_BEST:]:
            fits = first <= last < min(len(places), first + _LONGEST_ANSWER)
            if fits and places[first] and places[last]:
                found.append((float(start[first] + end[last]), places[first][0], places[last][1]))
    return max(found, default=None)


class Collator:
    """Pads the features of a batch to its longest; multiple choice has four sequences each."""

    def __init__(self, tokenizer: AlbertTokenizerFast, tensors: str) -> None:
        """tensors: "pt" or "np", the type of tensors in a batch."""
        self._tokenizer, self._tensors = tokenizer, tensors

    def __call__(self, features: list[dict]) -> dict:
        inputs = [{name: row[name] for name in _MODEL_INPUTS} for row in features]
        targets = {
            name: np.array([row[name] for row in features])
            for name in features[0]
            if name not in _MODEL_INPUTS
        }
        nested = np.ndim(inputs[0]["input_ids"][0]) > 0
        if nested:
            inputs = [
                {n: np.asarray(row[n][i]).tolist() for n in row} for row in inputs for i in range(4)
            ]
        batch = dict(self._tokenizer.pad(inputs, return_tensors=self._tensors))
        if nested:
            batch = {n: values.reshape(len(features), 4, -1) for n, values in batch.items()}
        if self._tensors == "pt":
            import torch

            targets = {name: torch.from_numpy(values) for name, values in targets.items()}
        return {**batch, **targets}
