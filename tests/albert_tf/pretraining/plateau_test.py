"""Notices of a loss that rests, falls and comes back; the level against a simulation."""

import math

import numpy as np
import pytest

from albert_tf.pretraining import open_records
from albert_tf.pretraining.plateau import PlateauWatch, frequency_level, watch_of

ENTROPY = 6.0
LEVEL = frequency_level(ENTROPY)  # 5.54


def notices(losses: list[float], watch: PlateauWatch | None = None) -> dict[int, str]:
    """step -> notice, with a report every 20 steps."""
    watch = watch or PlateauWatch(ENTROPY)
    found = {
        step: watch.notice(step, {"masked_lm_loss": loss})
        for step, loss in zip(range(20, 10**6, 20), losses)
    }
    return {step: text for step, text in found.items() if text}


def test_the_level_is_what_the_best_model_without_context_has():
    """Eight of ten words are hidden, one is kept, one replaced by any word."""
    random = np.random.default_rng(1)
    size, count = 2_000, 400_000
    probabilities = 1 / np.arange(1.0, size + 1)
    probabilities /= probabilities.sum()
    words = random.choice(size, count, p=probabilities)
    draws = random.random(count)
    shown = np.where(draws < 0.9, words, random.choice(size, count, p=probabilities))
    guess = probabilities[words]  # Of hidden words.
    guess = np.where(draws < 0.8, guess, guess / 2 + (shown == words) / 2)
    entropy = -(probabilities * np.log(probabilities)).sum()
    assert frequency_level(entropy) == pytest.approx(-np.log(guess).mean(), abs=0.05)


def test_a_loss_that_rests_is_told_of_more_and_more_rarely():
    found = notices([LEVEL - 0.2] * 250)
    assert list(found) == [500, 1000, 2000, 4000]
    assert f"loss {LEVEL - 0.2:.2f}; a loss of {LEVEL:.2f} needs no context" in found[500]
    assert "make_starting_weights" in found[500]


FALLING = list(np.linspace(9, 3, 20))


@pytest.mark.parametrize(
    "losses",
    [
        FALLING + [3.0] * 60,
        FALLING + [3.0] * 20 + [9.0] + [3.0] * 20,
        [3.0] * 40 + [math.nan, math.inf] + [3.0] * 40,
    ],
    ids=["falls in time", "a single bad batch", "a step that was left out"],
)
def test_what_is_no_news(losses):
    assert not notices(losses)


def test_a_collapse_is_told_once():
    falling, back = list(np.linspace(9, 4, 100)), [LEVEL] * 60
    found = notices(falling + back + [4.0] * 50 + back)
    first, second = [step for step, text in found.items() if "frequency only" in text]
    assert 2_000 < first < 2_300 and 4_200 < second < 4_500
    assert "at step 2000" in found[first] and "Lower --learning_rate" in found[first]


def test_the_watch_of_records(work):
    data = open_records(str(work / "sop"), batch_size=8)
    watch = watch_of(data)
    entropy = data.manifest["statistics"]["unigram"]["cross_entropy"]
    assert watch._level == pytest.approx(frequency_level(entropy), abs=1e-3)
