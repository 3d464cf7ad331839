"""The start-up card, line by line."""

import pytest

from albert_tf.analysis.costs import training_bytes
from albert_tf.machine import fast_switch
from albert_tf.models import AlbertClassifier
from albert_tf.training.report import cards


@pytest.fixture(autouse=True)
def form(monkeypatch):
    monkeypatch.setattr(fast_switch, "is_on", lambda: False)
    monkeypatch.setattr(cards, "packs_here", lambda: True)


def rows_of(capsys, model, batch_size=6, num_micro_batches=1, **rows) -> dict[str, str]:
    cards.print_start("A run", model, batch_size, 10, rows, num_micro_batches)
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "A run"
    column = 2 + max(map(len, ["memory of a replica", *rows])) + 2
    assert all(line.startswith("  ") and line[column - 2 : column] == "  " for line in lines)
    return {line[:column].strip(): line[column:] for line in lines}


def test_a_card(tiny_config, capsys):
    model = AlbertClassifier(tiny_config, 3)
    size = sum(variable.shape.num_elements() for variable in model.variables)
    assert rows_of(capsys, model, passes="3.0", parameters_and_more="x") == {
        "parameters": f"{size:,} (encoder {size - 51:,}, classification 51)",
        "devices": "TensorFlow's choice, replicas: 1",
        "precision": "float32",
        "execution": "--fast=off --packed=true",
        "memory of a replica": "about 0.0 GiB",
        "tokens per update": "60 (6 x 10)",
        "passes": "3.0",
        "parameters_and_more": "x",
    }


def test_a_task_may_say_it_otherwise(tiny_config, capsys):
    rows = rows_of(capsys, AlbertClassifier(tiny_config, 3), **{"tokens per update": "few"})
    assert rows["tokens per update"] == "few" and len(rows) == 6


@pytest.mark.parametrize(
    ("packed", "is_on", "expected"),
    [
        (None, False, "--fast=off --packed=true"),
        (True, True, "--fast=on --packed=true"),
        (False, True, "--fast=on --packed=false"),
    ],
)
def test_execution(tiny_config, capsys, monkeypatch, packed, is_on, expected):
    monkeypatch.setattr(fast_switch, "is_on", lambda: is_on)
    model = AlbertClassifier(tiny_config, 3, packed=packed)
    assert rows_of(capsys, model)["execution"] == expected


def test_what_is_frozen_is_not_counted(tiny_config, capsys):
    model = AlbertClassifier(tiny_config, 3)
    model.encoder.trainable = False
    assert rows_of(capsys, model)["parameters"] == "51 (classification 51)"


def test_a_replicas_share(tiny_config, capsys, two_devices, monkeypatch):
    """Five sequences are three for the first of two replicas."""
    asked = []

    def bytes_of(*given):
        asked.append(given)
        return 3 * 2**29

    monkeypatch.setattr(cards, "training_bytes", bytes_of)
    with two_devices.scope():
        model = AlbertClassifier(tiny_config, 3)
    rows = rows_of(capsys, model, batch_size=5)
    assert rows["devices"] == "MirroredStrategy, replicas: 2"
    assert rows["memory of a replica"] == "about 1.5 GiB"
    (given,) = asked
    assert given[2:] == (3, 10) and given[0] == tiny_config
    assert training_bytes(*given) > 0
    rows_of(capsys, model, batch_size=48, num_micro_batches=4)
    assert asked[1][2] == 6  # Of micro-batches one is in memory.


def test_precision(tiny_config, capsys):
    """The model's own, which need not be the global one."""
    model = AlbertClassifier(tiny_config, 3, dtype="mixed_bfloat16")
    assert rows_of(capsys, model)["precision"] == "mixed_bfloat16"
