"""The learning rate at chosen steps."""

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.optimization import Recipe, WarmupConstantDecay, WarmupPolynomialDecay, scale_recipe

FROM_STEP_ZERO = {0: 0.0, 5: 0.05, 9: 0.09, 10: 0.09, 50: 0.05, 100: 0.0, 200: 0.0}
FROM_THE_PEAK = {0: 0.0, 10: 0.1, 55: 0.05, 100: 0.0, 200: 0.0}


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        ({"num_warmup_steps": 10}, FROM_STEP_ZERO),
        ({"num_warmup_steps": 10, "decay_after_warmup": True}, FROM_THE_PEAK),
        ({"power": 2.0}, {0: 0.1, 50: 0.025}),
    ],
    ids=["decay counted from step zero", "decay after the warm-up", "power and no warm-up"],
)
def test_warm_up_and_polynomial_decay(settings, rates):
    schedule = WarmupPolynomialDecay(0.1, 100, **settings)
    for each in (schedule, WarmupPolynomialDecay.from_config(schedule.get_config())):
        assert {step: float(each(step)) for step in rates} == pytest.approx(rates, abs=1e-7)


def test_a_warm_up_longer_than_the_training():
    with pytest.raises(UserError, match="warmup_steps 11 .* between 0 and num_train_steps 10"):
        WarmupPolynomialDecay(0.1, num_train_steps=10, num_warmup_steps=11)


def test_a_recipe_for_a_smaller_batch():
    paper = Recipe(0.00176, num_train_steps=125_000, num_warmup_steps=3125)
    scaled = scale_recipe(paper, made_for=4096, batch_size=256)
    assert scaled == Recipe(pytest.approx(0.00044), 2_000_000, 50_000)
    assert scale_recipe(paper, 4096, 4096) == paper


@pytest.mark.parametrize(("warmup", "share"), [(0, 0.2), (10, 0.25), (5, 0.0), (0, 1.0)])
def test_warm_up_constant_decay_equals_numpy(warmup, share):
    schedule = WarmupConstantDecay(0.1, 40, warmup, share)
    start = 40 - round(40 * share)
    points, rates = ([0, warmup], [0, 0.1]) if warmup else ([0], [0.1])
    steps = np.arange(41)
    expected = np.interp(steps, [*points, start, 40], [*rates, 0.1, 0.0])
    if share == 0:
        expected[-1] = 0.0
    again = WarmupConstantDecay.from_config(schedule.get_config())
    np.testing.assert_allclose([float(again(step)) for step in steps], expected, atol=1e-7)


def test_a_warm_up_that_reaches_into_the_decay():
    with pytest.raises(UserError, match="start of the decay, step 8 of 10"):
        WarmupConstantDecay(0.1, 10, 9)
    with pytest.raises(UserError, match="decay_share 1.5"):
        WarmupConstantDecay(0.1, 10, 0, 1.5)
