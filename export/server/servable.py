"""One loaded version of a model: its signatures, and their answers to checked requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef, TensorInfo

from export import saved_model
from export.graphs.checks import REFUSALS, reason
from export.server.refusals import Limits, ServingError, invalid, listed
from export.signatures import DEFAULT_SIGNATURE
from export.warmup import EXAMPLES_INPUT, check_warmup

# TF Serving method -> the outputs that its signatures may have; at least one is required.
_OUTPUTS = {"Classify": {"classes", "scores"}, "Regress": {"outputs"}}


class Servable:
    """A loaded version of a model; `signature_defs` are its SignatureDef protos by name."""

    def __init__(
        self,
        name: str,
        version: int,
        path: str,
        limits: Limits = Limits(),  # noqa: B008  (immutable)
    ) -> None:
        self.name, self.version, self.path, self.limits = name, version, path, limits
        self._loaded = saved_model.load(path)
        # Read from the file, since loaded signatures lack the names of tensors and of the method.
        definitions = saved_model.meta_graph(path).signature_def
        self.signature_defs: dict[str, SignatureDef] = {
            name: each for name, each in definitions.items() if not name.startswith("__")
        }
        # The first call of a graph takes seconds. As in TF Serving, it happens here, so that no
        # client waits for it: the store gets this object only after `__init__` returns.
        check_warmup(path, self._loaded.signatures)

    def signature_def(self, signature: str) -> SignatureDef:
        """The signature with this name; an empty name means the default."""
        name = signature or DEFAULT_SIGNATURE
        if name not in self.signature_defs:
            raise invalid(
                f"Model {self.name!r} has no signature {name!r:.80}. It has: "
                f"{listed(self.signature_defs)}."
            )
        return self.signature_defs[name]

    def predict(
        self,
        signature: str,
        inputs: Mapping[str, Any],
        to_array: Callable[[str, Any, TensorInfo], np.ndarray] = lambda name, value, info: value,
    ) -> dict[str, np.ndarray]:
        """Values by input name -> arrays by output name; string arrays hold bytes.

        `to_array` creates an array from an input's name, value and TensorInfo; by default, the
        values must already be arrays.

        Raises:
          ServingError: INVALID_ARGUMENT if names, types or shapes do not fit the signature, or a
            limit is exceeded; RESOURCE_EXHAUSTED if there is not enough memory.
        """
        infos = self.signature_def(signature).inputs
        if set(inputs) != set(infos):
            raise invalid(
                f"Signature {signature or DEFAULT_SIGNATURE!r} of model {self.name!r} takes the "
                f"inputs {listed(infos)}; received {listed(inputs) or 'none'}."
            )
        tensors = {
            name: self._tensor(name, to_array(name, value, infos[name]), infos[name])
            for name, value in inputs.items()
        }
        try:
            answer = self._loaded.signatures[signature or DEFAULT_SIGNATURE](**tensors)
        except REFUSALS as error:
            raise invalid(f"Model {self.name!r}: {reason(error)}") from error
        except (tf.errors.ResourceExhaustedError, MemoryError) as error:
            raise ServingError(
                "RESOURCE_EXHAUSTED",
                f"Model {self.name!r}: the answer needs more memory than available. Send less.",
            ) from error
        self.limits.check_answer(sum(math.prod(value.shape) for value in answer.values()))
        return {name: value.numpy() for name, value in answer.items()}

    def _tensor(self, name: str, value: np.ndarray, info: TensorInfo) -> tf.Tensor:
        dtype = tf.as_dtype(info.dtype)
        self.limits.check_shape(name, value.shape)
        if value.dtype == object:
            self.limits.check_strings(name, value)
        try:
            tensor = tf.constant(value, dtype)
        except (TypeError, ValueError) as error:
            message = str(error).splitlines()[0]
            raise invalid(f"Input {name!r} should be {dtype.name}: {message:.200}") from None
        # A loaded signature accepts any shape, even one that it does not declare.
        shape = tf.TensorShape(info.tensor_shape)
        if not shape.is_compatible_with(tensor.shape):
            raise invalid(f"Input {name!r} should have the shape {shape}; received {tensor.shape}.")
        return tensor

    def classify(self, signature: str, examples: Sequence[bytes]) -> list[list[tuple[str, float]]]:
        """Serialized tf.Examples [B] -> for each of them (class, score) for each class. Raises
        ServingError as `predict` does, and if the signature is not for Classify.
        """
        outputs = self._answer_examples(signature, examples, "Classify")
        # As in TF Serving: missing `classes` become empty strings, missing `scores` zeros.
        shape = next(iter(outputs.values())).shape
        classes = outputs.get("classes", np.full(shape, b"", object)).tolist()
        scores = outputs.get("scores", np.zeros(shape, np.float32)).tolist()
        return [
            [(label.decode("utf-8", errors="replace"), score) for label, score in zip(*row)]
            for row in zip(classes, scores)
        ]

    def regress(self, signature: str, examples: Sequence[bytes]) -> list[float]:
        """Serialized tf.Examples [B] -> a number for each of them. Raises ServingError as `predict`
        does, and if the signature is not for Regress.
        """
        return self._answer_examples(signature, examples, "Regress")["outputs"].reshape(-1).tolist()

    def _answer_examples(
        self, signature: str, examples: Sequence[bytes], method: str
    ) -> dict[str, np.ndarray]:
        if not _suits(self.signature_def(signature), method):
            suiting = [name for name, each in self.signature_defs.items() if _suits(each, method)]
            raise invalid(
                f"Signature {signature or DEFAULT_SIGNATURE!r} of model {self.name!r} is not for "
                f"{method} (input {EXAMPLES_INPUT!r}, outputs {listed(_OUTPUTS[method])}). These "
                f"are: {listed(suiting) or 'none'}."
            )
        return self.predict(signature, {EXAMPLES_INPUT: np.array(examples, dtype=object)})


def _suits(definition: SignatureDef, method: str) -> bool:
    """Whether a signature takes tf.Examples and has the outputs of a TF Serving method."""
    takes_examples = list(definition.inputs) == [EXAMPLES_INPUT]
    return takes_examples and set() < set(definition.outputs) <= _OUTPUTS[method]
