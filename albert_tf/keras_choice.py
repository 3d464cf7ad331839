"""The choice of Keras 2, made before TensorFlow is imported; see keras_compat."""

import importlib.metadata
import os
import re
import sys


def _installed_version(*distributions: str) -> tuple[int, int]:
    """Major and minor version of the first of these distributions that is installed."""
    for name in distributions:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if numbers := re.match(r"(\d+)\.(\d+)", version):
            return int(numbers[1]), int(numbers[2])
    raise ImportError(
        "TensorFlow is not installed. Install this project with what it needs: `pip install .` in "
        "its folder."
    )


TF_VERSION = _installed_version(
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-tpu",
    "tf-nightly",
    "tensorflow-macos",
    "intel-tensorflow",
)


def prefer_keras_2() -> None:
    """Makes `tf.keras` the Keras of this project, unless TensorFlow is imported already."""
    # Then the user's own layers and optimizers, made of tf.keras, go with the models of this
    # project. TensorFlow reads the variable once, when it is imported; `require_keras_2` says what
    # to do where that was too early.
    if TF_VERSION >= (2, 16) and "tensorflow" not in sys.modules:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
