"""What models of the published sizes have and cost."""

import functools

import pytest

from albert_tf import PRESETS
from albert_tf.analysis.costs import count_parameters


@pytest.mark.parametrize(
    ("preset", "encoder"),
    [
        ("albert-base-v2", 11_683_584),
        ("albert-large-v2", 17_683_968),
        ("albert-xlarge-v2", 58_724_864),
        ("albert-xxlarge-v2", 222_595_584),
    ],
)
def test_published_encoders(preset, encoder):
    parts = count_parameters(PRESETS[preset])
    assert sum(parts.values()) - parts["masked_lm"] - parts["sentence_order"] == encoder


def test_the_program(result_of):
    run = functools.partial(result_of, "albert_tf.describe")
    shown = run("--preset=albert-base-v2", "--batch_size=8", "--max_seq_length=128").stdout
    assert "11,683,584" in shown and "174.8 MFLOP" in shown and "0.67 GiB" in shown
    assert "222,595,584" in run("--paper_table=1").stdout
    assert "3 layers, H = 6144" in run("--paper_table=width").stdout
    trained = run("--paper_table=sentence_objective")
    assert trained.returncode == 2 and "python -m experiments.paper --table=" in trained.stderr
    wrong = run("--preset=albert-base-v2", "--max_seq_length=513")
    assert wrong.returncode == 2 and "longer than the model's 512 positions" in wrong.stderr
    assert "pass one of --preset and --config_file" in run().stderr
