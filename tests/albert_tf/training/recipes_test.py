"""The flag files: the paper's values, and each starts."""

import json
from pathlib import Path

import pytest

from albert_tf.keras_compat import keras
from albert_tf.pretrained import presets

CONFIGS = Path(__file__).parents[3] / "configs"
PAPER = [
    f"pretrain_{size}_{version}"
    for size in ("base", "large", "xlarge", "xxlarge")
    for version in ("v1", "v2")
]


def flags_of(name: str) -> dict[str, str]:
    lines = (CONFIGS / f"{name}.flags").read_text(encoding="utf-8").splitlines()
    return dict(line[2:].split("=") for line in lines if line.startswith("--"))


@pytest.mark.parametrize("name", PAPER)
def test_values_of_the_paper(name):
    values = flags_of(name)
    expected = {
        "preset": name.replace("pretrain_", "albert-").replace("_", "-"),
        "optimizer": "lamb",
        "train_batch_size": "4096",
        "learning_rate": "0.00176",
        "num_train_steps": "125000",
        "num_warmup_steps": "3125",
    }
    assert {key: values[key] for key in expected} == expected


@pytest.mark.parametrize(
    "name",
    [
        # Those of the paper differ by their presets alone.
        pytest.param(name, marks=[pytest.mark.table] if name in PAPER[1:] else [])
        for name in sorted(path.stem for path in CONFIGS.glob("pretrain_*.flags"))
    ],
)
def test_it_starts(name, work, tmp_path, run_program, eagerly, monkeypatch, capfd):
    """With its preset made small, and one update of a small batch in place of its own; activations
    are computed again.
    """
    small = {
        preset: config.replace(
            hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
        )
        for preset, config in presets.PRESETS.items()
    }
    monkeypatch.setattr(presets, "PRESETS", small)
    flags = {
        "train_data": work / "sop",
        "output_dir": tmp_path / "run",
        "train_batch_size": 4,
        "distribution": "one_device",
        "num_train_steps": 1,
        "num_warmup_steps": 0,
        "recompute": True,
        **({"config_file": work / "config.json"} if "preset" not in flags_of(name) else {}),
    }
    arguments = [f"--{key}={value}" for key, value in flags.items()]
    policy = keras.mixed_precision.global_policy()
    command = ["albert_tf.run_pretraining", f"--flagfile={CONFIGS / name}.flags", *arguments]
    try:
        with eagerly():  # One update: tracing would take longer.
            run_program(*command)
    except SystemExit as end:
        assert not end.code, capfd.readouterr().err
    finally:
        keras.mixed_precision.set_global_policy(policy)
    written = json.loads((tmp_path / "run" / "albert_config.json").read_text())
    if "preset" in flags_of(name):
        preset = small[flags_of(name)["preset"]]
        assert written["hidden_dropout_prob"] == preset.hidden_dropout_prob
    assert written["recompute"]
    assert (tmp_path / "run" / "model" / "model.json").exists()
