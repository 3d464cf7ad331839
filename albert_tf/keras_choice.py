"""Which Keras this project runs on, decided before TensorFlow is imported; see keras_compat."""

import importlib.metadata
import os
import re
import sys


def _installed_version(*distributions: str) -> tuple[int, int]:
    for name in distributions:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        major, minor = re.match(r"(\d+)\.(\d+)", version).groups()
        return int(major), int(minor)
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
    if TF_VERSION >= (2, 16) and "tensorflow" not in sys.modules:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
