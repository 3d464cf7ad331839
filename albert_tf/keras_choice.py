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
        "TensorFlow is not installed. Install this project and its dependencies: `pip install .` "
        "in its folder."
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
    # This makes user layers and optimizers from tf.keras compatible with the models of this
    # project. TensorFlow reads the variable only once, on import; if it was imported before,
    # `require_keras_2` tells users what to do.
    if TF_VERSION >= (2, 16) and "tensorflow" not in sys.modules:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
