"""Warns when masked words are predicted no better than by frequency, or fall back to that."""

from __future__ import annotations

import math

from albert_tf.errors import UserError
from albert_tf.pretraining.data import PretrainingData
from data_pipeline.pretraining.masking import KEEP_PROBABILITY
from data_pipeline.pretraining.statistics import read_label_counts, unigram_scores

_REST = 0.4  # Nats below the frequency level that a model can reach without context.
_PROGRESS = 0.3  # Nats below that; a loss that rises again from there is a collapse.
_SMOOTHING = 50  # Updates.
_FIRST_NOTICE = 500  # Updates; then after twice as many, and so on.


def frequency_level(entropy: float) -> float:
    """The loss of masked words, in nats, of a model that predicts by frequency (with that entropy,
    in nats) and uses no context.
    """
    # Of ten words to predict, eight are hidden and cost their entropy. One is shown and one is
    # replaced: the model cannot tell which, and gives the visible word probability 1/2.
    hidden_or_replaced = 1 - KEEP_PROBABILITY
    return hidden_or_replaced * entropy + 2 * KEEP_PROBABILITY * math.log(2)


class PlateauWatch:
    """Follows the loss of masked words in training, from the start or from a resume."""

    def __init__(self, entropy: float) -> None:
        """entropy: of the frequencies of the words to predict, in nats."""
        self._level = frequency_level(entropy)
        self._loss = self._lowest = math.inf
        self._lowest_step = self._step = 0
        self._next_notice = _FIRST_NOTICE

    def notice(self, step: int, metrics: dict[str, float]) -> str | None:
        """The notice to print after a report at a step, if any; `metrics` are the report's, with
        "masked_lm_loss".
        """
        loss = metrics["masked_lm_loss"]
        if not math.isfinite(loss):
            return None
        # A smoothed loss: single reports vary more than the distances that are compared here.
        share = 1 - math.exp((self._step - step) / _SMOOTHING)
        self._loss = loss if math.isinf(self._loss) else self._loss + share * (loss - self._loss)
        self._step = step
        if self._loss < self._lowest:
            self._lowest, self._lowest_step = self._loss, step
        rests = self._loss > self._level - _REST
        if rests and self._lowest < self._level - _REST - _PROGRESS:
            lowest, self._lowest = self._lowest, self._loss
            return (
                "masked words are again predicted by word frequency only: loss "
                f"{self._loss:.2f} after {lowest:.2f} at step {self._lowest_step}. Lower "
                "--learning_rate, or lengthen the warm-up; prefer a checkpoint from before that "
                "step to the newest one."
            )
        if rests and step >= self._next_notice:
            self._next_notice = 2 * step
            return (
                f"masked words are not yet predicted better than by word frequency: loss "
                f"{self._loss:.2f}; a loss of {self._level:.2f} needs no context. From random "
                "weights this phase takes thousands of updates; --init_checkpoint with weights of "
                "albert_tf.make_starting_weights skips it."
            )
        return None


def watch_of(data: PretrainingData) -> PlateauWatch | None:
    """The watch for a run on some data; None if their words are not counted."""
    if not data.has_statistics:
        return None
    try:
        counts = read_label_counts(data.manifest)
        return PlateauWatch(unigram_scores(counts, counts)["cross_entropy"])
    except UserError:  # Training also works without counts or masked words.
        return None
