"""Displays batches of records: text with marked masks, and measured distributions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from data_pipeline.tokenizers.base import Tokenizer

_PARTS = 8  # Parts of a sequence, for the distribution of masks over its length.
_LONGEST_RUN = 6
_STYLES = {"masked": "33", "same": "32", "random": "31", "special": "2"}  # ANSI
_LEGEND = {"masked": "[MASK]", "same": "left as it is", "random": "random piece"}


def _styled(text: str, style: str, color: bool) -> str:
    return f"\033[{_STYLES[style]}m{text}\033[0m" if color else text


def legend(color: bool) -> str:
    """The meaning of the marks, in one line."""
    kinds = ", ".join(_styled(text, style, color) for style, text in _LEGEND.items())
    return f"To be predicted: input<label>, neighbors between {{ }}: {kinds}."


def format_record(
    batch: Mapping[str, np.ndarray], row: int, tokenizer: Tokenizer, color: bool = False
) -> str:
    """Formats a row of a `dataset.pretraining_dataset` batch in three lines: numbers, segment A,
    segment B. A piece to predict is written `input<label>`; runs of them are enclosed in { }.
    """
    record = {name: values[row] for name, values in batch.items()}
    length = int(record["input_mask"].sum())
    count = int(record["masked_lm_weights"].sum())
    ids = record["input_word_ids"][:length]
    labels = dict(
        zip(
            record["masked_lm_positions"][:count].tolist(), record["masked_lm_ids"][:count].tolist()
        )
    )
    words = []
    for position, (token, piece) in enumerate(zip(ids.tolist(), tokenizer.ids_to_pieces(ids))):
        label = labels.get(position)
        if label is None:
            is_special = token in (tokenizer.cls_id, tokenizer.sep_id)
            words.append(_styled(piece, "special", color) if is_special else piece)
            continue
        kind = "same" if label == token else "masked" if token == tokenizer.mask_id else "random"
        text = _styled(f"{piece}<{tokenizer.pieces[label]}>", kind, color)
        text = text if position - 1 in labels else "{" + text
        words.append(text if position + 1 in labels else text + "}")
    types = record["input_type_ids"][:length]
    border = int(np.argmax(types)) if types.any() else length
    order = "swapped (or random B)" if record["sentence_order_labels"] else "in order"
    return (
        f"{length} tokens, {count} to predict, {order}\n"
        f"  A: {' '.join(words[:border])}\n  B: {' '.join(words[border:]) or '-'}"
    )


class Distributions:
    """Distributions measured on batches of records: lengths, masks, swapped pairs."""

    def __init__(self, mask_id: int) -> None:
        self._mask_id = mask_id
        self.records = self.tokens = self.swapped = 0
        # Number of predictions, and of those with [MASK] or the label as input.
        self.labels = self.masked = self.same = 0
        # Number of runs of 1, 2, ... adjacent predictions; the last entry includes longer runs.
        self.runs = np.zeros(_LONGEST_RUN, np.int64)
        self.parts = np.zeros(_PARTS, np.int64)  # Predictions in each eighth of their sequence.

    def add(self, batch: Mapping[str, np.ndarray]) -> None:
        """Adds the real rows of a batch of `dataset.pretraining_dataset`."""
        real = batch["example_weights"] > 0
        batch = {name: values[real] for name, values in batch.items()}
        lengths = batch["input_mask"].sum(axis=1)
        is_label = batch["masked_lm_weights"] > 0
        rows, columns = np.nonzero(is_label)
        positions = batch["masked_lm_positions"][rows, columns]
        inputs, labels = batch["input_word_ids"][rows, positions], batch["masked_lm_ids"][is_label]
        self.records += len(lengths)
        self.tokens += int(lengths.sum())
        self.labels += len(labels)
        self.masked += int(np.count_nonzero(inputs == self._mask_id))
        self.same += int(np.count_nonzero(inputs == labels))
        self.swapped += int(batch["sentence_order_labels"].sum())
        goes_on = (np.diff(positions) == 1) & (np.diff(rows) == 0)
        # The first label begins a run, if there is one.
        run_starts = np.flatnonzero(np.concatenate([[True], ~goes_on])) if len(rows) else rows
        sizes = np.diff(np.concatenate([run_starts, [len(rows)]]))
        self.runs += np.bincount(np.minimum(sizes, _LONGEST_RUN), minlength=_LONGEST_RUN + 1)[1:]
        part = np.minimum(positions * _PARTS // np.maximum(lengths[rows], 1), _PARTS - 1)
        self.parts += np.bincount(part, minlength=_PARTS)

    def rows(self) -> Iterable[tuple[str, str]]:
        """(name, value) of each figure, as text."""
        labels = max(1, self.labels)
        other = self.labels - self.masked - self.same
        sizes = [str(size) for size in range(1, _LONGEST_RUN)] + [f"{_LONGEST_RUN}+"]
        yield "records measured", f"{self.records:,}"
        yield "mean length", f"{self.tokens / max(1, self.records):.1f}"
        yield "to be predicted", f"{self.labels / max(1, self.tokens):.2%} of the tokens"
        yield (
            "input there",
            f"[MASK] {self.masked / labels:.1%}, same {self.same / labels:.1%}, "
            f"random {other / labels:.1%}",
        )
        yield "runs of pieces", _shares(sizes, self.runs)
        yield f"by {_PARTS}th of the text", _shares([""] * _PARTS, self.parts)
        yield "swapped pairs", f"{self.swapped / max(1, self.records):.2%}"


def _shares(names: Iterable[str], counts: np.ndarray) -> str:
    total = max(1, int(counts.sum()))
    return "  ".join(f"{name} {count / total:.1%}".strip() for name, count in zip(names, counts))
