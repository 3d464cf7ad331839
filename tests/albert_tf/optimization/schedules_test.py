"""The learning rate at chosen steps."""

import pytest

from albert_tf.errors import UserError
from albert_tf.optimization import WarmupPolynomialDecay


@pytest.mark.parametrize(
    ("step", "rate"),
    [(0, 0.0), (5, 0.05), (9, 0.09), (10, 0.09), (50, 0.05), (100, 0.0), (200, 0.0)],
)
def test_warm_up_then_decay_counted_from_step_zero(step, rate):
    schedule = WarmupPolynomialDecay(0.1, num_train_steps=100, num_warmup_steps=10)
    assert float(schedule(step)) == pytest.approx(rate, abs=1e-7)


def test_power_and_no_warm_up():
    schedule = WarmupPolynomialDecay(0.1, num_train_steps=100, power=2.0)
    assert float(schedule(0)) == pytest.approx(0.1)
    assert float(schedule(50)) == pytest.approx(0.025)


def test_a_warm_up_longer_than_the_training():
    with pytest.raises(
        UserError, match="num_warmup_steps 11 does not lie between 0 and num_train_steps 10"
    ):
        WarmupPolynomialDecay(0.1, num_train_steps=10, num_warmup_steps=11)
