"""Which Keras is used, by the version of TensorFlow that is installed."""

import importlib.metadata
import os
import sys

import pytest
import tensorflow as tf

from albert_tf import keras_choice


def test_the_version_is_tensorflows():
    major, minor, _ = tf.__version__.split(".", 2)
    assert (int(major), int(minor)) == keras_choice.TF_VERSION


def test_the_first_distribution_that_is_installed(monkeypatch):
    def version(name):
        if name != "tensorflow-cpu":
            raise importlib.metadata.PackageNotFoundError(name)
        return "2.15.0.post1"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert keras_choice._installed_version("tensorflow", "tensorflow-cpu", "tf") == (2, 15)
    with pytest.raises(ImportError, match="TensorFlow is not installed. .*`pip install .`"):
        keras_choice._installed_version("tensorflow")


@pytest.mark.parametrize(
    ("version", "is_imported", "before", "after"),
    [
        ((2, 15), False, None, None),
        ((2, 16), False, None, "1"),
        ((2, 21), False, None, "1"),
        ((2, 21), False, "0", "0"),
        ((2, 21), True, None, None),
    ],
)
def test_legacy_keras_is_asked_for_before_tensorflow(
    monkeypatch, version, is_imported, before, after
):
    monkeypatch.setattr(keras_choice, "TF_VERSION", version)
    modules = {"tensorflow": tf} if is_imported else {}
    monkeypatch.setattr(sys, "modules", modules)
    monkeypatch.setattr(os, "environ", {} if before is None else {"TF_USE_LEGACY_KERAS": before})
    keras_choice.prefer_keras_2()
    found = os.environ.get("TF_USE_LEGACY_KERAS")
    monkeypatch.undo()
    assert found == after
