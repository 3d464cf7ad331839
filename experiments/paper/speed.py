"""The Speedup column of Table 2 on this machine, separately for arithmetic and optimizer."""

from __future__ import annotations

import json
from pathlib import Path

from albert_tf.analysis.costs import count_parameters, pretraining_flops_per_token, training_bytes
from albert_tf.pretrained.presets import get_preset
from experiments.paper.cells import command
from experiments.programs import run_program

# Preset -> the training speedup in the ICLR version, relative to BERT large.
MODELS = {
    "bert-base": "4.7x",
    "bert-large": "1.0",
    "bert-xlarge": "",
    "albert-base-v1": "5.6x",
    "albert-large-v1": "1.7x",
    "albert-xlarge-v1": "0.6x",
    "albert-xxlarge-v1": "0.3x",
}
_BATCH, _LENGTH = 4, 128
# Larger models are timed with one and with two layers, and extrapolated to all layers.
_MOST_BYTES, _MOST_FLOPS = 3 * 2**30, 2e12
Seconds = dict[str, float]  # By part: "arithmetic" and "optimizer".


def flops(preset: str) -> float:
    """The number of operations in an update."""
    per_token = pretraining_flops_per_token(get_preset(preset), _LENGTH, _LENGTH // 8)
    return _BATCH * _LENGTH * per_token


def is_large(preset: str) -> bool:
    """Whether a model is too large to be timed as a whole."""
    config = get_preset(preset)
    memory = training_bytes(config, sum(count_parameters(config).values()), _BATCH, _LENGTH)
    return memory > _MOST_BYTES or flops(preset) > _MOST_FLOPS


def measure(preset: str, folder: Path, precision: str) -> Seconds:
    """Seconds for each part of an update; reuses measurements that are in the folder."""
    found, layers = [], get_preset(preset).num_hidden_layers
    for number in (1, 2) if is_large(preset) else (layers,):
        path = folder / f"{preset}_{number}_{precision}.json"
        if not path.exists():
            sizes = {"num_layers": number, "batch_size": _BATCH, "length": _LENGTH}
            what = {"preset": preset, "precision": precision, **sizes, "output": path}
            run_program(*command("experiments.paper.update", **what), log=folder / "log")
        found.append(json.loads(path.read_text(encoding="utf-8")))
    first, last = found[0], found[-1]
    total = {part: first[part] + (layers - 1) * (last[part] - first[part]) for part in first}
    if get_preset(preset).parameter_sharing == "all":  # Layers add no work for the optimizer.
        total["optimizer"] = min(first["optimizer"], last["optimizer"])
    return total


def table_rows(folder: Path, precision: str) -> list[dict[str, str]]:
    """Speeds relative to BERT large, as in the paper."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {preset: measure(preset, folder, precision) for preset in MODELS}
    large = found["bert-large"]
    return [
        {
            "model": preset + " (one layer times their number)" * is_large(preset),
            "paper (TPU)": MODELS[preset],
            "operations": f"{flops('bert-large') / flops(preset):.2f}x",
            "arithmetic": f"{large['arithmetic'] / seconds['arithmetic']:.2f}x",
            "optimizer": f"{large['optimizer'] / seconds['optimizer']:.1f}x",
            "whole update": f"{sum(large.values()) / sum(seconds.values()):.2f}x",
            "processor seconds": f"{seconds['arithmetic']:.2f} + {seconds['optimizer']:.3f}",
        }
        for preset, seconds in found.items()
    ]
