"""The device flags of both programs: what they resolve to, what they refuse, and determinism."""

import json

import pytest
import tensorflow as tf
from tensorflow.python.framework import config as tensorflow_config  # The only way back.

from albert_tf.errors import UserError
from albert_tf.machine import fast_switch
from albert_tf.training import DeviceSettings, devices, running
from albert_tf.training.report.metrics_file import read_metrics
from tests.finetuning_files import six_updates


@pytest.fixture
def run(run_program, fast_choice):
    """(module, *flags) -> runs a program in this process to its end; returns its exit code."""

    def run(module: str, *arguments: str) -> int:
        with pytest.raises(SystemExit) as end:
            run_program(module, *arguments, "--distribution=one_device")
        return end.value.code or 0

    yield run
    tensorflow_config.disable_op_determinism()


def recorded_flags(run_dir) -> dict[str, object]:
    return json.loads((run_dir / "flags.json").read_text())


def test_deterministic_pretraining_without_xla(
    run, pretraining_command, tmp_path, monkeypatch, capsys, eager
):
    """With dynamic masks and dropout; a missing XLA costs one line and not the run."""
    monkeypatch.setattr(fast_switch, "_is_linux_on_cpu", lambda: True)
    monkeypatch.setattr(fast_switch, "xla_error", lambda: "libdevice not found")
    _, module, *arguments = pretraining_command(num_train_steps=2, fast="auto")
    assert run(module, *arguments, "--deterministic") == 0
    assert tensorflow_config.is_op_determinism_enabled()
    shown = capsys.readouterr()
    assert shown.err.count("XLA") == 1
    assert "--fast=auto is off: XLA cannot compile on this machine: libdevice" in shown.err
    packed = "false" if tf.config.list_logical_devices("GPU") else "true"
    assert f"--fast=off --packed={packed}" in shown.out
    flags = recorded_flags(tmp_path / "run")
    assert (flags["fast"], flags["packed"], flags["deterministic"]) == ("off", packed, True)
    assert len(read_metrics(str(tmp_path / "run" / "metrics.csv"))) == 1


def test_padded_classification(program, work, tmp_path, monkeypatch):
    """Up to its first step: the model is what the flags say."""

    def stop(stepper, **unused):
        raise UserError(f"packed: {stepper.objective.model.encoder.packed}")

    def start(train: str) -> tuple[int, str, str]:
        (tmp_path / "train.tsv").write_text(f"text\tlabel\nthe cat\ta\non {train}\tb\n")
        (tmp_path / "dev.tsv").write_text("text\tlabel\nthe cat\ta\non a mat\tb\n")
        flags = {**six_updates(tmp_path, work), "train_batch_size": 2, "packed": "false"}
        flags |= {"output_dir": tmp_path / "run", "distribution": "one_device", "fast": "off"}
        return program("run_finetuning", task="tsv", **flags)

    monkeypatch.setattr(running, "train", stop)
    code, shown, errors = start("a mat")
    assert code == 2 and "packed: False" in errors and "--fast=off --packed=false" in shown
    flags = recorded_flags(tmp_path / "run")
    assert (flags["fast"], flags["packed"], flags["deterministic"]) == ("off", "false", False)
    code, _, errors = start("a cat")  # Other text of the same length.
    assert code == 2 and "examples was" in errors


@pytest.mark.parametrize(
    ("program", "flags"),
    [
        ("albert_tf.run_pretraining", ["--fast=on"]),
        ("albert_tf.run_finetuning", ["--jit_compile", "--task=tsv"]),
    ],
)
def test_what_needs_xla_is_refused_without_it(run, tmp_path, monkeypatch, capsys, program, flags):
    monkeypatch.setattr(fast_switch, "xla_error", lambda: "libdevice not found")
    assert run(program, f"--output_dir={tmp_path / 'run'}", *flags) == 2
    message = f"{flags[0]} needs XLA, which cannot compile on this machine: libdevice"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.fixture
def prepared(monkeypatch):
    """(**settings) -> devices, without a change of this process; `calls` says what was asked."""
    calls = []
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    makers = {
        "make_strategy": lambda *given: calls.append(given) or strategy,
        "forget_devices": lambda: calls.append("forgotten"),
        "packs_here": lambda: True,
    }
    for name, function in makers.items():
        monkeypatch.setattr(devices, name, function)
    monkeypatch.setattr(
        devices.keras.mixed_precision, "set_global_policy", lambda name: calls.append(name)
    )
    monkeypatch.setattr(devices.keras.utils, "set_random_seed", lambda seed: calls.append(seed))
    monkeypatch.setattr(
        tf.config.experimental, "enable_op_determinism", lambda: calls.append("determinism")
    )
    monkeypatch.setattr(fast_switch, "choose", lambda mode: mode == "on")
    monkeypatch.setattr(fast_switch, "xla_error", str)

    def prepare(**settings) -> devices.Devices:
        calls.clear()
        return devices.prepare_devices(DeviceSettings(**settings))

    prepare.calls, prepare.strategy = calls, strategy
    return prepare


def test_devices_are_prepared_in_order(prepared):
    assert prepared() == (prepared.strategy, True, False)
    assert prepared.calls == [("mirrored", None), "forgotten", "float32"]
    found = prepared(
        distribution="tpu", tpu="local", precision="mixed_bfloat16", deterministic=True, seed=9,
        fast="on",
    )  # fmt: skip
    assert found.strategy is prepared.strategy and found.is_fast
    expected = ["determinism", ("tpu", "local"), "forgotten", "mixed_bfloat16", 9]
    assert prepared.calls == expected


@pytest.mark.parametrize(
    ("packed", "packs", "is_static", "jit_compile", "expected"),
    [
        ("auto", True, False, False, True),
        ("auto", False, False, False, False),
        ("auto", True, True, False, False),
        ("auto", True, False, True, False),
        ("true", False, False, False, True),
        ("false", True, False, False, False),
        ("true", True, True, False, None),
        ("true", True, False, True, None),
    ],
)
def test_packed_rows(prepared, monkeypatch, packed, packs, is_static, jit_compile, expected):
    monkeypatch.setattr(devices, "packs_here", lambda: packs)
    monkeypatch.setattr(devices, "shapes_must_be_static", lambda: is_static)
    if expected is None:
        with pytest.raises(UserError, match="--packed=true does not work with --jit_compile or --"):
            prepared(packed=packed, jit_compile=jit_compile)
    else:
        assert prepared(packed=packed, jit_compile=jit_compile).packed is expected


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("lacks", [True, False])
def test_bfloat16_without_instructions_is_said(monkeypatch, capsys, fast_choice, precision, lacks):
    monkeypatch.setattr(devices, "lacks_bfloat16", lambda: lacks)
    try:
        devices.prepare_devices(DeviceSettings(distribution="one_device", precision=precision))
    finally:
        devices.keras.mixed_precision.set_global_policy("float32")
    said = "Use --precision=float32" in capsys.readouterr().err
    assert said is (lacks and precision == "mixed_bfloat16")
