"""What a graph will run on, found out while it is made."""

from __future__ import annotations

import pytest
import tensorflow as tf

from albert_tf.machine import targets


@pytest.fixture
def devices(monkeypatch):
    """Kinds of devices that TensorFlow has, to be changed."""
    kinds: set[str] = set()
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda kind: ["one"] if kind in kinds else []
    )
    targets.forget_devices()
    yield kinds
    targets.forget_devices()


@pytest.mark.parametrize("kinds", [(), ("GPU",), ("TPU",), ("GPU", "TPU")], ids=str)
def test_devices(devices, kinds):
    devices.update(kinds)
    assert (targets.has_gpu(), targets.has_tpu()) == ("GPU" in kinds, "TPU" in kinds)


def test_devices_are_asked_for_once(devices):
    assert not targets.has_gpu() and not targets.has_tpu()
    devices |= {"GPU", "TPU"}
    assert not targets.has_gpu() and not targets.has_tpu()
    targets.forget_devices()
    assert targets.has_gpu() and targets.has_tpu()


@pytest.mark.parametrize(
    ("flags", "kinds", "lacks"),
    [
        ("flags\t: fpu avx2 avx512f", (), True),
        ("flags\t: fpu avx2 avx512f", ("GPU",), False),
        ("flags\t: fpu avx512f avx512_bf16", (), False),
        ("flags\t: fpu amx_bf16 amx_tile", (), False),
        ("Features\t: fp asimd bf16", (), False),
        ("Features\t: fp asimd", (), True),
    ],
)
def test_instructions_for_bfloat16(devices, tmp_path, monkeypatch, flags, kinds, lacks):
    devices.update(kinds)
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{flags}\n")
    monkeypatch.setattr(targets, "_CPU_INFO", tmp_path / "cpuinfo")
    assert targets.lacks_bfloat16() is lacks


def test_a_machine_that_does_not_tell_has_them(devices, tmp_path, monkeypatch):
    monkeypatch.setattr(targets, "_CPU_INFO", tmp_path / "none")
    assert not targets.lacks_bfloat16()


@pytest.mark.parametrize(
    "kind", [tf.distribute.TPUStrategy, tf.distribute.experimental.TPUStrategy]
)
def test_strategies_for_tpus(monkeypatch, kind):
    strategy = kind.__new__(kind)  # Nothing here can make a whole one.
    assert targets.is_for_tpu(strategy)
    assert not targets.is_for_tpu(tf.distribute.OneDeviceStrategy("CPU:0"))
    assert not targets.shapes_must_be_static()
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: strategy)
    assert targets.shapes_must_be_static()


def seen(**options) -> list[bool]:
    """What is said inside a function, in a function that it calls, and in a branch of it."""
    found = []

    def note(x):
        found.append(targets.shapes_must_be_static())
        return x

    @tf.function(autograph=False, **options)
    def run(x):
        note(x)
        tf.function(note, autograph=False)(x)
        return tf.cond(x > 0, lambda: note(x), lambda: -x)

    run.get_concrete_function(tf.TensorSpec([]))
    return found


def test_shapes_under_xla():
    assert not targets.shapes_must_be_static()
    assert seen() == [False] * 3
    assert seen(jit_compile=True) == [True] * 3
