"""TF Serving's gRPC API: Predict, Classify, Regress, MultiInference, metadata, status, health."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

import grpc
import tensorflow as tf
from google.protobuf import wrappers_pb2
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_pb2,
    predict_pb2,
    regression_pb2,
)

from export.server.errors import INTERNAL, INVALID_ARGUMENT, NOT_FOUND, ServingError, invalid
from export.server.inference import classify, regress
from export.server.monitoring import Monitor
from export.server.protos import serialized_examples, to_array
from export.server.servable import Servable
from export.server.store import ModelStore
from export.signatures import DEFAULT_SIGNATURE

_PREDICTION = "tensorflow.serving.PredictionService"
_MODELS = "tensorflow.serving.ModelService"
_HEALTH = "grpc.health.v1.Health"
_SERVING = 1  # HealthCheckResponse.ServingStatus.
_COMPUTING = ("Predict", "Classify", "Regress", "MultiInference")  # The methods that need a turn.


def add_services(server: grpc.Server, store: ModelStore, monitor: Monitor) -> None:
    """Registers the services, answering for the models of `store`."""
    service = Service(store)
    methods: dict[str, dict[str, tuple[Callable, Any]]] = {
        _PREDICTION: {
            "Predict": (service.predict, predict_pb2.PredictRequest),
            "Classify": (service.classify, classification_pb2.ClassificationRequest),
            "Regress": (service.regress, regression_pb2.RegressionRequest),
            "MultiInference": (service.multi_inference, inference_pb2.MultiInferenceRequest),
            "GetModelMetadata": (service.metadata, get_model_metadata_pb2.GetModelMetadataRequest),
        },
        _MODELS: {
            "GetModelStatus": (service.status, get_model_status_pb2.GetModelStatusRequest),
        },
        # Its messages, one field each, have the wire format of these wrappers: no further package.
        _HEALTH: {"Check": (service.health, wrappers_pb2.StringValue)},
    }
    for name, table in methods.items():
        handlers = {}
        for method, entry in table.items():
            turn = store.turns.turn if method in _COMPUTING else contextlib.nullcontext
            handle = _handler(*entry, method, monitor, turn)
            handlers[method] = grpc.unary_unary_rpc_method_handler(handle)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))


def _handler(
    answer: Callable, request_class: Any, method: str, monitor: Monitor, turn: Callable
) -> Callable:
    """A handler of bytes, so that a message that does not parse gets a sentence, too."""

    def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
        start, model, code, message, response = time.perf_counter(), "", "OK", "", b""
        try:
            with turn():
                request = request_class.FromString(data)
                model = _model_of(request)
                response = answer(request).SerializeToString()
        except DecodeError:
            code, message = INVALID_ARGUMENT, f"The message is no {request_class.__name__}."
        except ServingError as error:
            code, message = error.code, error.message
        except Exception as error:
            logging.exception("internal error")
            code, message = INTERNAL, f"Internal error: {type(error).__name__}."
        monitor.record("GRPC", method.lower(), model, code, time.perf_counter() - start)
        if code != "OK":
            context.abort(getattr(grpc.StatusCode, code), message)
        return response

    return handle


class Service:
    """The methods of the services, from request to response; each may raise ServingError."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store

    def predict(self, request: predict_pb2.PredictRequest) -> predict_pb2.PredictResponse:
        """Predict."""
        servable = self._servable(request.model_spec)
        signature = request.model_spec.signature_name
        servable.check_names(signature, request.inputs)
        infos = servable.signature_def(signature)
        wanted = set(request.output_filter)
        if len(wanted) < len(request.output_filter):
            raise invalid("output_filter names an output twice.")
        unknown = wanted - set(infos.outputs)
        if unknown:
            raise invalid(
                f"output_filter names {', '.join(sorted(unknown))[:200]}; outputs: "
                f"{', '.join(sorted(infos.outputs))}."
            )
        inputs = {
            name: to_array(name, proto, infos.inputs[name], servable.limits)
            for name, proto in request.inputs.items()
        }
        outputs = servable.predict(signature, inputs)
        response = predict_pb2.PredictResponse()
        _fill_spec(response.model_spec, servable, signature)
        for name in request.output_filter or outputs:
            value, dtype = outputs[name], infos.outputs[name].dtype
            response.outputs[name].CopyFrom(
                tf.make_tensor_proto(value, dtype=dtype, shape=value.shape)
            )
        return response

    def classify(
        self, request: classification_pb2.ClassificationRequest
    ) -> classification_pb2.ClassificationResponse:
        """Classify."""
        servable = self._servable(request.model_spec)
        response = classification_pb2.ClassificationResponse()
        _fill_spec(response.model_spec, servable, request.model_spec.signature_name)
        examples = serialized_examples(request.input, servable.limits)
        _classify(servable, request.model_spec.signature_name, examples, response.result)
        return response

    def regress(
        self, request: regression_pb2.RegressionRequest
    ) -> regression_pb2.RegressionResponse:
        """Regress."""
        servable = self._servable(request.model_spec)
        response = regression_pb2.RegressionResponse()
        _fill_spec(response.model_spec, servable, request.model_spec.signature_name)
        examples = serialized_examples(request.input, servable.limits)
        _regress(servable, request.model_spec.signature_name, examples, response.result)
        return response

    def multi_inference(
        self, request: inference_pb2.MultiInferenceRequest
    ) -> inference_pb2.MultiInferenceResponse:
        """MultiInference: several signatures of one model on the same examples."""
        specs = [task.model_spec for task in request.tasks]
        if len({spec.name for spec in specs}) != 1:
            raise invalid("The tasks of a MultiInference should name one model, the same in each.")
        if len({spec.signature_name for spec in specs}) < len(specs):
            raise invalid("The tasks of a MultiInference should name different signatures.")
        response = inference_pb2.MultiInferenceResponse()
        examples = serialized_examples(request.input, self._store.limits)
        for task in request.tasks:
            servable, signature = self._servable(task.model_spec), task.model_spec.signature_name
            result = response.results.add()
            _fill_spec(result.model_spec, servable, signature)
            if task.method_name == "tensorflow/serving/classify":
                _classify(servable, signature, examples, result.classification_result)
            elif task.method_name == "tensorflow/serving/regress":
                _regress(servable, signature, examples, result.regression_result)
            else:
                raise invalid(
                    "method_name of a task should be 'tensorflow/serving/classify' or "
                    f"'tensorflow/serving/regress', not {task.method_name!r:.80}."
                )
        return response

    def metadata(
        self, request: get_model_metadata_pb2.GetModelMetadataRequest
    ) -> get_model_metadata_pb2.GetModelMetadataResponse:
        """GetModelMetadata."""
        servable = self._servable(request.model_spec)
        if list(request.metadata_field) != ["signature_def"]:
            raise invalid(
                "metadata_field should be ['signature_def'], not "
                f"{str(list(request.metadata_field))[:80]}."
            )
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = servable.name
        response.model_spec.version.value = servable.version
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name, definition in servable.signature_defs.items():
            signatures.signature_def[name].CopyFrom(definition)
        response.metadata["signature_def"].Pack(signatures)
        return response

    def status(
        self, request: get_model_status_pb2.GetModelStatusRequest
    ) -> get_model_status_pb2.GetModelStatusResponse:
        """GetModelStatus."""
        response = get_model_status_pb2.GetModelStatusResponse()
        spec = request.model_spec
        for version, state, code, message in self._store.status(spec.name, *_which(spec)):
            status = response.model_version_status.add(version=version, state=state)
            status.status.error_code = getattr(tf.errors, code, 0)
            status.status.error_message = message
        return response

    def health(self, request: wrappers_pb2.StringValue) -> wrappers_pb2.Int32Value:
        """Check of gRPC's health protocol; request and response are its messages on the wire."""
        if request.value not in ("", _PREDICTION, _MODELS):
            raise ServingError(NOT_FOUND, f"Service {request.value!r:.80} is not offered here.")
        return wrappers_pb2.Int32Value(value=_SERVING)

    def _servable(self, spec: model_pb2.ModelSpec) -> Servable:
        if not spec.name:
            raise invalid(f"model_spec.name is empty. Served: {', '.join(self._store.names())}.")
        return self._store.get(spec.name, *_which(spec))


def _model_of(request: Any) -> str:
    """The name of the model that a request is for; "" where it is for none, or for several."""
    if isinstance(request, inference_pb2.MultiInferenceRequest):
        names = {task.model_spec.name for task in request.tasks}
        return names.pop() if len(names) == 1 else ""
    return request.model_spec.name if hasattr(request, "model_spec") else ""


def _which(spec: model_pb2.ModelSpec) -> tuple[int | None, str | None]:
    """Version and label that a request names; None for one that it does not."""
    version = spec.version.value if spec.HasField("version") else None
    return version, spec.version_label or None


def _fill_spec(spec: model_pb2.ModelSpec, servable: Servable, signature: str) -> None:
    spec.name = servable.name
    spec.version.value = servable.version
    spec.signature_name = signature or DEFAULT_SIGNATURE


def _classify(
    servable: Servable,
    signature: str,
    examples: list[bytes],
    result: classification_pb2.ClassificationResult,
) -> None:
    classes, scores = classify(servable, signature, examples)
    for row_classes, row_scores in zip(classes, scores):
        row = result.classifications.add()
        for label, score in zip(row_classes, row_scores):
            row.classes.add(label=label.decode("utf-8", errors="replace"), score=score)


def _regress(
    servable: Servable,
    signature: str,
    examples: list[bytes],
    result: regression_pb2.RegressionResult,
) -> None:
    for value in regress(servable, signature, examples):
        result.regressions.add(value=value)
