"""AdamW as google-research/albert has it: no bias correction, decay inside the update."""

from __future__ import annotations

from typing import Any

from albert_tf.keras_compat import keras
from albert_tf.optimization.base import AdamFamily


@keras.utils.register_keras_serializable("albert_tf")
class AdamW(AdamFamily):
    """w <- w - lr * (m / (sqrt(v) + epsilon) + decay * w). Arguments: see AdamFamily."""

    def __init__(self, learning_rate: Any, name: str = "AdamW", **kwargs: Any) -> None:
        super().__init__(learning_rate, name=name, **kwargs)
