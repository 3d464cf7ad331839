"""The mean of weights is a folder of weights, read by name."""

import re

import numpy as np
import pytest

from albert_tf import AlbertPretrainer
from albert_tf.checkpoints import native

VOCABULARY = "albert_tf/weights/albert-small-en/spiece.model"


@pytest.fixture(name="folders")
def fixture_folders(tiny_config, tmp_path):
    config = tiny_config.replace(vocab_size=12000)
    for name, hidden_size in (("a", 16), ("b", 16), ("wide", 32)):
        model = AlbertPretrainer(config.replace(hidden_size=hidden_size))
        rules = {"lower": True, "rules": "google"}
        native.save(model, str(tmp_path / name), {"max_seq_length": 16}, VOCABULARY, rules)
    return tmp_path


def test_shares_are_those_of_the_flag(folders, result_of):
    command = ("experiments.weights.average", f"--output_dir={folders}/mean")
    result = result_of(*command, f"--models=0.5*{folders}/a,0.25*{folders}/b,0.25*{folders}/a")
    assert result.returncode == 0, result.stderr
    first, second, mean = (
        AlbertPretrainer.from_preset(str(folders / name)).trainable_variables
        for name in ("a", "b", "mean")
    )
    for one, other, both in zip(first, second, mean):
        expected = 0.75 * one.numpy() + 0.25 * other.numpy()
        np.testing.assert_allclose(both.numpy(), expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "models, message",
    [
        ("0.5*{}/a,0.4*{}/b", "the shares do not sum to 1"),
        ("nan*{}/a", "the shares do not sum to 1"),
        ("0.5*{}/a,0.5*{}/wide", "another configuration or vocabulary than"),
        ("{}/a,1*{}/b", "expected SHARE[*]NAME_OR_PATH"),
    ],
)
def test_what_has_no_mean_is_refused(folders, result_of, models, message):
    result = result_of(
        "experiments.weights.average",
        *(f"--models={models.replace('{}', str(folders))}", f"--output_dir={folders}/mean"),
    )
    assert result.returncode == 2 and not (folders / "mean").exists()
    assert re.search(message, result.stderr)
