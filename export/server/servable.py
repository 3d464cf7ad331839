"""One loaded version of a model: its signatures, and their answers to checked requests."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from export import saved_model
from export.graphs.checks import REFUSALS, reason
from export.server.refusals import RESOURCE_EXHAUSTED, Limits, ServingError, invalid, listed
from export.signatures import DEFAULT_SIGNATURE
from export.warmup import EXAMPLES_INPUT, check_warmup


class Servable:
    """One loaded version of a model.

    The first call of a graph takes seconds, so the requests of the export's warm-up file are
    answered here, as TF Serving does: whoever gets this object does not wait for them.

    Args:
      name, version: name of the model, and number of the version.
      path: folder of the version.
      limits: the largest request that is answered.

    Attributes:
      name, version, path, limits: as given.
      signature_defs: SignatureDef protos by name, as GetModelMetadata reports them.
    """

    def __init__(
        self,
        name: str,
        version: int,
        path: str,
        limits: Limits = Limits(),  # noqa: B008  (immutable)
    ) -> None:
        self.name, self.version, self.path, self.limits = name, version, path, limits
        self._loaded = saved_model.load(path)
        self.signature_defs = _read_signature_defs(path)
        check_warmup(path, self._loaded.signatures)

    def signature_def(self, signature: str) -> meta_graph_pb2.SignatureDef:
        """The signature of a name; an empty one means the default."""
        name = signature or DEFAULT_SIGNATURE
        if name not in self.signature_defs:
            raise invalid(
                f"Model {self.name!r} has no signature {name!r:.80}. It has: "
                f"{listed(self.signature_defs)}."
            )
        return self.signature_defs[name]

    def check_names(self, signature: str, names: Iterable[str]) -> None:
        """Raises ServingError unless the names are those of the signature's inputs."""
        wanted = self.signature_def(signature).inputs
        if set(names) != set(wanted):
            raise invalid(
                f"Signature {signature or DEFAULT_SIGNATURE!r} of model {self.name!r} takes the "
                f"inputs {listed(wanted)}; received {listed(names) or 'none'}."
            )

    def predict(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Arrays by input name -> arrays by output name; string arrays hold bytes.

        Raises:
          ServingError: INVALID_ARGUMENT when names, types or shapes do not fit the signature or
            are beyond the limits; RESOURCE_EXHAUSTED when memory does not suffice.
        """
        self.check_names(signature, inputs)
        infos = self.signature_def(signature).inputs
        tensors = {name: self._tensor(name, inputs[name], infos[name]) for name in inputs}
        try:
            answer = self._loaded.signatures[signature or DEFAULT_SIGNATURE](**tensors)
        except REFUSALS as error:
            raise invalid(f"Model {self.name!r}: {reason(error)}") from error
        except (tf.errors.ResourceExhaustedError, MemoryError) as error:
            raise ServingError(
                RESOURCE_EXHAUSTED,
                f"Model {self.name!r}: the answer needs more memory than there is. Send less.",
            ) from error
        self.limits.check_answer(sum(math.prod(value.shape) for value in answer.values()))
        return {name: value.numpy() for name, value in answer.items()}

    def _tensor(self, name: str, value: np.ndarray, info: meta_graph_pb2.TensorInfo) -> tf.Tensor:
        dtype = tf.as_dtype(info.dtype)
        self.limits.check_shape(name, value.shape)
        if value.dtype == object:
            self.limits.check_strings(name, value)
        try:
            tensor = tf.constant(value, dtype)
        except (TypeError, ValueError) as error:
            told = str(error).splitlines()[0]
            raise invalid(f"Input {name!r} should be {dtype.name}: {told:.200}") from None
        shape = tf.TensorShape(info.tensor_shape)
        if not shape.is_compatible_with(tensor.shape):
            raise invalid(f"Input {name!r} should have the shape {shape}; received {tensor.shape}.")
        return tensor

    def classify(self, signature: str, examples: Sequence[bytes]) -> list[list[tuple[str, float]]]:
        """Serialized tf.Examples [B] -> for each of them (class, score) for each class.

        A signature without classes gives empty ones, one without scores zeros, as TF Serving does.

        Raises:
          ServingError: INVALID_ARGUMENT when signature or examples do not suit Classify.
        """
        outputs = self._answer_examples(signature, examples, "Classify")
        shape = next(iter(outputs.values())).shape
        classes = outputs.get("classes", np.full(shape, b"", object)).tolist()
        scores = outputs.get("scores", np.zeros(shape, np.float32)).tolist()
        return [
            [(label.decode("utf-8", errors="replace"), score) for label, score in zip(*row)]
            for row in zip(classes, scores)
        ]

    def regress(self, signature: str, examples: Sequence[bytes]) -> list[float]:
        """Serialized tf.Examples [B] -> a number for each of them.

        Raises:
          ServingError: INVALID_ARGUMENT when signature or examples do not suit Regress.
        """
        outputs = self._answer_examples(signature, examples, "Regress")
        return outputs["outputs"].reshape(-1).tolist()

    def _answer_examples(
        self, signature: str, examples: Sequence[bytes], method: str
    ) -> dict[str, np.ndarray]:
        if not _suits(self.signature_def(signature), method):
            suiting = [name for name, each in self.signature_defs.items() if _suits(each, method)]
            raise invalid(
                f"Signature {signature or DEFAULT_SIGNATURE!r} of model {self.name!r} is not for "
                f"{method} (one input {EXAMPLES_INPUT!r}, {_OUTPUTS[method]}). These are: "
                f"{', '.join(suiting) or 'none'}."
            )
        return self.predict(signature, {EXAMPLES_INPUT: np.array(examples, dtype=object)})


_OUTPUTS = {"Classify": "outputs 'classes' and 'scores'", "Regress": "one output 'outputs'"}


def _suits(definition: meta_graph_pb2.SignatureDef, method: str) -> bool:
    """Whether a signature takes tf.Examples and gives what a method of TF Serving answers."""
    outputs = set(definition.outputs)
    if method == "Classify":
        fits = bool(outputs) and outputs <= {"classes", "scores"}
    else:
        fits = outputs == {"outputs"}
    return fits and list(definition.inputs) == [EXAMPLES_INPUT]


def _read_signature_defs(path: str) -> dict[str, meta_graph_pb2.SignatureDef]:
    """The signatures in a SavedModel's folder, without running anything."""
    content = saved_model_pb2.SavedModel()
    with tf.io.gfile.GFile(os.path.join(path, "saved_model.pb"), "rb") as file:
        content.ParseFromString(file.read())
    signatures = content.meta_graphs[0].signature_def
    return {name: value for name, value in signatures.items() if not name.startswith("__")}
