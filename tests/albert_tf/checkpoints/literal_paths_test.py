"""Checkpoints and SavedModels at paths that TensorFlow takes for patterns."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import bundle, literal_paths
from albert_tf.errors import UserError
from export import client, saved_model


@pytest.mark.parametrize("name", ["a[1]/w", "a/w[2]", "*?/w", "a]/w"])
def test_a_checkpoint_is_read_at_the_path_of_that_name(tmp_path, name):
    for folder in ("a1", "a", "other"):  # What the patterns would find.
        (tmp_path / folder).mkdir()
        bundle.write(str(tmp_path / folder / "w"), {"x": np.zeros(2)})
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    bundle.write(str(path), {"x": np.arange(2.0)})
    weights = bundle.BundleWeights(str(path))
    np.testing.assert_array_equal(weights.read("x"), [0, 1])


def test_an_export_that_was_moved_answers_there(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable(2.0)
    serve = tf.function(
        lambda x: {"y": module.weight * x}, input_signature=[tf.TensorSpec([None], name="x")]
    )
    path = str(tmp_path / "a[1]" / "3")
    tf.saved_model.save(module, str(tmp_path / "3"), signatures={"serving_default": serve})
    (tmp_path / "a[1]").mkdir()
    (tmp_path / "3").rename(path)
    with literal_paths.literal(path) as readable:
        loaded = tf.saved_model.load(readable)
    assert loaded.signatures["serving_default"](tf.constant([3.0]))["y"].numpy() == [6]
    assert client._load(path)["serving_default"](tf.constant([3.0]))["y"].numpy() == [6]


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(
        UserError, match=r"gs://b/a\[1\]/w contains '\['. A checkpoint cannot be read"
    ):
        bundle.write("gs://b/a[1]/w", {"x": np.zeros(2)})
    with pytest.raises(UserError, match="An export cannot be read there"):
        saved_model.version_path(str(tmp_path / "a*"), 1)
