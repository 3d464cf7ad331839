"""Keras 2 everywhere: `tf.keras` up to TensorFlow 2.15, the `tf_keras` package in later versions.

Keras 3 is not used because it has no working TPUStrategy and writes no reusable SavedModels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from albert_tf.keras_choice import TF_VERSION

if TF_VERSION < (2, 16):
    from tensorflow import keras
else:
    try:
        import tf_keras as keras
    except ImportError as error:
        raise ImportError(
            f"TensorFlow {TF_VERSION[0]}.{TF_VERSION[1]} needs the package tf-keras of the same "
            f'version: pip install "tf-keras=={TF_VERSION[0]}.{TF_VERSION[1]}.*"'
        ) from error


@contextlib.contextmanager
def policy_scope(policy: keras.mixed_precision.Policy) -> Iterator[None]:
    """A context in which new layers get a dtype policy, unless their constructor is given one."""
    # Keras layers take the global policy on construction. Otherwise `dtype` would have to be passed
    # to every layer, down to the last dropout.
    before = keras.mixed_precision.global_policy()
    if before.name == policy.name:
        yield
        return
    keras.mixed_precision.set_global_policy(policy)
    try:
        yield
    finally:
        keras.mixed_precision.set_global_policy(before)


def require_keras_2(optimizer: object) -> None:
    """Raises TypeError when an optimizer is an object of Keras 3."""
    ours, module = keras.layers.Layer.__module__, type(optimizer).__module__
    if module.split(".")[0] == "keras" != ours.split(".")[0]:
        raise TypeError(
            f"`optimizer` is a Keras 3 object ({module}.{type(optimizer).__name__}), and this "
            "project runs on Keras 2. Set TF_USE_LEGACY_KERAS=1 before importing TensorFlow, or "
            "make the object with `from albert_tf.keras_compat import keras`."
        )
