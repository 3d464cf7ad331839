"""Checkpoints by name: written, read, and what in them is not a weight."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import bundle
from albert_tf.errors import UserError

TENSORS = {
    "bert/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "bert/bias": np.float32([1, 2, 3]),
}


@pytest.fixture
def prefix(tmp_path) -> str:
    prefix = str(tmp_path / "model.ckpt")
    bundle.write(prefix, TENSORS)
    return prefix


def test_what_is_written_is_read_here_and_by_tensorflow(prefix):
    weights, reader = bundle.BundleWeights(prefix), tf.train.load_checkpoint(prefix)
    assert weights.path == prefix
    assert weights.shapes == {"bert/kernel": [2, 3], "bert/bias": [3]}
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(weights.read(name), value)
        np.testing.assert_array_equal(reader.get_tensor(name), value)


def test_slots_and_counters_are_no_weights_and_the_scope_of_tf_hub_no_name(tmp_path):
    names = ["module/a/kernel", "a/module/kernel", "a/global_step_size", "lamb_m_x"]
    others = ["global_step", "a/adam_m", "a/adam_v", "a/kernel/lamb_m", "lamb_v"]
    prefix = str(tmp_path / "model.ckpt")
    bundle.write(prefix, {name: np.float32([len(name)]) for name in names + others})
    weights = bundle.BundleWeights(prefix)
    assert set(weights.shapes) == {"a/global_step_size", "a/kernel", "a/module/kernel", "lamb_m_x"}
    assert weights.read("a/kernel") == [len("module/a/kernel")]


def test_a_missing_checkpoint(tmp_path, prefix):
    bundle.check_exists(prefix)
    for check in (bundle.check_exists, bundle.BundleWeights):
        with pytest.raises(UserError, match=r"there is no file .*/no\.index.* without the ending"):
            check(str(tmp_path / "no"))


def test_an_index_that_is_none(tmp_path):
    (tmp_path / "broken.index").write_bytes(b"not an index")
    with pytest.raises(UserError, match="checkpoint .*broken cannot be read"):
        bundle.BundleWeights(str(tmp_path / "broken"))


def test_data_that_were_altered(prefix):
    path = f"{prefix}.data-00000-of-00001"
    with open(path, "r+b") as file:
        file.write(b"\xff" * 8)
    weights = bundle.BundleWeights(prefix)
    with pytest.raises(UserError, match="is damaged: bert/bias cannot be read .* Copy it again"):
        weights.read("bert/bias")
