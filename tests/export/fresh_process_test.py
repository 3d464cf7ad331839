"""Exports are checked where nothing of the exporting process is at hand."""

import os

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from export import fresh_process
from export.comparison import Comparison
from export.fresh_process import FreshProcessError, shared
from export.probes import Probe
from export.saved_model import write_version


class Module(tf.Module):
    """Its second signature works only in the process that made it."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def double(self, x):
        return {"y": 2 * x}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def double_by_python(self, x):
        return {"y": tf.ensure_shape(tf.numpy_function(lambda x: 2 * x, [x], tf.float32), [None])}

    def signatures(self):
        return {"serving_default": self.double, "python": self.double_by_python}


VALUES = np.array([1.5, -2], np.float32)
EXACT = Comparison("float32", 0, {})
DOUBLE = Probe("serving_default", {"x": VALUES}, {"y": 2 * VALUES})


def test_what_only_works_here_is_not_published(tmp_path):
    """The same process answers for the next export all the same."""
    module, by_python = Module(), Probe("python", DOUBLE.inputs, DOUBLE.expected)
    np.testing.assert_array_equal(module.double_by_python(tf.constant(VALUES))["y"], 2 * VALUES)
    with pytest.raises(UserError, match="1 was not written, because the exported graph does not"):
        write_version(module, str(tmp_path / "m"), None, [DOUBLE, by_python], {}, EXACT)
    assert os.listdir(tmp_path / "m") == []
    process = shared()
    assert write_version(module, str(tmp_path / "m"), None, [DOUBLE], {}, EXACT).max_difference == 0
    assert shared() is process


def test_a_process_that_ends_is_a_sentence_and_replaced(monkeypatch):
    class Replacement:
        is_alive = True

    first = shared()
    first._process.kill()
    first._process.wait()
    with pytest.raises(FreshProcessError, match=r"^the process that loads it ended: exit code -9"):
        first.check("/nowhere", [DOUBLE], 0)
    monkeypatch.setattr(fresh_process, "_shared", first)
    monkeypatch.setattr(fresh_process, "FreshProcess", Replacement)
    assert isinstance(shared(), Replacement) and shared() is shared()
    first.close()
