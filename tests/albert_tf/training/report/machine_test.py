"""The rate of a machine is measured in less than a second, however slow it is."""

import pytest
import tensorflow as tf

from albert_tf.training.report import machine


def test_the_rate_of_the_machine():
    rate = machine.matmul_flops_per_second("float32", tf.distribute.OneDeviceStrategy("CPU:0"))
    assert 1e8 < rate < 1e17


@pytest.mark.parametrize("rate", [1e7, 3e8, 4e9, 4e10, 4e11, 1e14])
def test_the_measurement_ends_soon(rate):
    """float16 on a CPU without a kernel for it: 3e8; two cores in float32: 4e11."""
    sizes = []

    def seconds(size: int) -> float:
        sizes.append(size)
        return 2 * size**3 / rate

    assert machine.best_rate(seconds) == pytest.approx(rate)
    assert sum(2 * size**3 / rate for size in sizes) < 0.6
    assert (max(sizes) == 1536) == (rate >= 4e10)


def test_a_first_product_may_be_slow():
    """Threads start, memory is taken."""
    times = {96: iter([5.0, 2 * 96**3 / 1e11])}

    def seconds(size: int) -> float:
        return next(times.get(size, iter([])), 2 * size**3 / 1e11)

    assert machine.best_rate(seconds) == pytest.approx(1e11)


@pytest.mark.parametrize(
    "kind", [tf.distribute.TPUStrategy, tf.distribute.experimental.TPUStrategy]
)
def test_no_figure_on_a_tpu_whose_host_would_be_measured(kind):
    assert machine.matmul_flops_per_second("float32", kind.__new__(kind)) == 0.0


def test_the_cost_of_a_step(monkeypatch):
    asked = []
    monkeypatch.setattr(
        machine, "matmul_flops_per_second", lambda *given: asked.append(given) or 5e9
    )
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    cost = machine.step_cost(100, 2e6, "bfloat16", strategy)
    assert cost == machine.StepCost(100, 2e8, 5e9)
    assert asked == [("bfloat16", strategy)]


@pytest.mark.parametrize(("gpus", "expected"), [([], 7.0), (["GPU:0"], 14.0)])
def test_accelerators_count_all(monkeypatch, gpus, expected, two_devices):
    monkeypatch.setattr(machine, "best_rate", lambda seconds: seconds(8) * 0 + 7.0)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpus)
    assert machine.matmul_flops_per_second("bfloat16", two_devices) == expected
