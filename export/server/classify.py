"""TF Serving's Classify on top of a signature `inputs` -> `classes`, `scores`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from export.server.store import INVALID_ARGUMENT, Servable, ServingError
from export.signatures import DEFAULT_SIGNATURE


def classify(
    servable: Servable, signature: str, examples: Sequence[bytes]
) -> tuple[np.ndarray, np.ndarray]:
    """Serialized tf.Examples [B] -> classes (bytes) and scores, [B, C] both.

    Raises:
      ServingError: INVALID_ARGUMENT when signature or examples do not suit Classify.
    """
    definition = servable.signature_def(signature)
    if list(definition.inputs) != ["inputs"] or set(definition.outputs) != {"classes", "scores"}:
        fitting = [
            name
            for name, other in servable.signature_defs.items()
            if list(other.inputs) == ["inputs"] and set(other.outputs) == {"classes", "scores"}
        ]
        raise ServingError(
            INVALID_ARGUMENT,
            f"Signature {signature or DEFAULT_SIGNATURE!r} of model {servable.name!r} is not for "
            "Classify (one input 'inputs', outputs 'classes' and 'scores'). These are: "
            f"{', '.join(fitting) or 'none'}.",
        )
    outputs = servable.predict(signature, {"inputs": np.array(examples, dtype=object)})
    return outputs["classes"], outputs["scores"]
