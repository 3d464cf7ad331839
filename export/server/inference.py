"""TF Serving's Classify and Regress, on signatures that take serialized tf.Examples as `inputs`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tensorflow.core.protobuf import meta_graph_pb2

from export.server.errors import invalid
from export.server.servable import Servable
from export.signatures import DEFAULT_SIGNATURE


def classify(
    servable: Servable, signature: str, examples: Sequence[bytes]
) -> tuple[np.ndarray, np.ndarray]:
    """Serialized tf.Examples [B] -> classes (bytes) and scores, [B, C] both.

    A signature without classes gives empty ones, one without scores zeros, as TF Serving does.

    Raises:
      ServingError: INVALID_ARGUMENT when signature or examples do not suit Classify.
    """
    outputs = _run(servable, signature, examples, "Classify", "outputs 'classes' and 'scores'")
    shape = next(iter(outputs.values())).shape
    classes = outputs.get("classes", np.full(shape, b"", object))
    return classes, outputs.get("scores", np.zeros(shape, np.float32))


def regress(servable: Servable, signature: str, examples: Sequence[bytes]) -> np.ndarray:
    """Serialized tf.Examples [B] -> numbers float32 [B].

    Raises:
      ServingError: INVALID_ARGUMENT when signature or examples do not suit Regress.
    """
    outputs = _run(servable, signature, examples, "Regress", "one output 'outputs'")
    return outputs["outputs"].reshape(-1)


_FITS = {
    "Classify": lambda names: bool(names) and names <= {"classes", "scores"},
    "Regress": lambda names: names == {"outputs"},
}


def _run(
    servable: Servable, signature: str, examples: Sequence[bytes], method: str, wanted: str
) -> dict[str, np.ndarray]:
    if not _fits(servable.signature_def(signature), method):
        others = servable.signature_defs.items()
        fitting = [name for name, other in others if _fits(other, method)]
        raise invalid(
            f"Signature {signature or DEFAULT_SIGNATURE!r} of model {servable.name!r} is not for "
            f"{method} (one input 'inputs', {wanted}). These are: {', '.join(fitting) or 'none'}."
        )
    return servable.predict(signature, {"inputs": np.array(examples, dtype=object)})


def _fits(definition: meta_graph_pb2.SignatureDef, method: str) -> bool:
    return list(definition.inputs) == ["inputs"] and _FITS[method](set(definition.outputs))
