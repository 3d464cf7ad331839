"""TF Serving's gRPC API: Predict, Classify, Regress, MultiInference, metadata, status, health."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import Int32Value, Int64Value, StringValue
from tensorflow_serving.apis.classification_pb2 import (
    ClassificationRequest,
    ClassificationResponse,
    ClassificationResult,
)
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
    SignatureDefMap,
)
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusRequest,
    GetModelStatusResponse,
)
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest, MultiInferenceResponse
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.regression_pb2 import (
    RegressionRequest,
    RegressionResponse,
    RegressionResult,
)

from export.server.models import ModelStore
from export.server.monitoring import Monitor
from export.server.protos import serialized_examples, to_array
from export.server.refusals import (
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    ServingError,
    invalid,
    listed,
)
from export.server.servable import Servable
from export.signatures import DEFAULT_SIGNATURE

_PREDICTION = "tensorflow.serving.PredictionService"
_MODELS = "tensorflow.serving.ModelService"
_HEALTH = "grpc.health.v1.Health"
_SERVING = 1  # HealthCheckResponse.ServingStatus.


def add_services(server: grpc.Server, store: ModelStore, monitor: Monitor) -> None:
    """Registers the services, answering for the models of `store`.

    Handlers are given bytes: grpc's own parsing answers a message that is none with UNKNOWN or
    INTERNAL, which would be the server's fault, and would count it nowhere.
    """
    service = Service(store)
    computing, plain = store.computing, contextlib.nullcontext()
    for name, method, answer, request_class, held in (
        (_PREDICTION, "Predict", service.predict, PredictRequest, computing),
        (_PREDICTION, "Classify", service.classify, ClassificationRequest, computing),
        (_PREDICTION, "Regress", service.regress, RegressionRequest, computing),
        (_PREDICTION, "MultiInference", service.multi_inference, MultiInferenceRequest, computing),
        (_PREDICTION, "GetModelMetadata", service.metadata, GetModelMetadataRequest, plain),
        (_MODELS, "GetModelStatus", service.status, GetModelStatusRequest, plain),
        # Its messages, one field each, have the wire format of these wrappers: no further package.
        (_HEALTH, "Check", service.health, StringValue, plain),
    ):
        handle = _handler(answer, request_class, held, method, monitor)
        handlers = {method: grpc.unary_unary_rpc_method_handler(handle)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))


def _handler(
    answer: Callable, request_class: Any, held: Any, method: str, monitor: Monitor
) -> Callable:
    """A handler from bytes to bytes, which holds a context while it reads, computes and writes."""

    def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
        start, model, code, message, response = time.perf_counter(), "", "OK", "", b""
        try:
            with held:
                request = request_class.FromString(data)
                model = _model_of(request)
                response = answer(request).SerializeToString()
        except DecodeError:
            code, message = INVALID_ARGUMENT, f"The message is not a {request_class.__name__}."
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

    def predict(self, request: PredictRequest) -> PredictResponse:
        """Predict."""
        servable, signature = self._asked(request.model_spec)
        servable.check_names(signature, request.inputs)
        infos, wanted = servable.signature_def(signature), list(request.output_filter)
        unknown = set(wanted) - set(infos.outputs)
        if unknown:
            raise invalid(
                f"output_filter names {listed(unknown)}; outputs: {listed(infos.outputs)}."
            )
        if len(set(wanted)) < len(wanted):
            raise invalid("output_filter names an output twice.")
        inputs = {
            name: to_array(name, proto, infos.inputs[name], servable.limits)
            for name, proto in request.inputs.items()
        }
        outputs = servable.predict(signature, inputs)
        response = PredictResponse(model_spec=_spec(servable, signature))
        for name in wanted or outputs:
            value, dtype = outputs[name], infos.outputs[name].dtype
            response.outputs[name].CopyFrom(
                tf.make_tensor_proto(value, dtype=dtype, shape=value.shape)
            )
        return response

    def classify(self, request: ClassificationRequest) -> ClassificationResponse:
        """Classify."""
        servable, signature = self._asked(request.model_spec)
        examples = serialized_examples(request.input, servable.limits)
        return ClassificationResponse(
            model_spec=_spec(servable, signature), result=_classes(servable, signature, examples)
        )

    def regress(self, request: RegressionRequest) -> RegressionResponse:
        """Regress."""
        servable, signature = self._asked(request.model_spec)
        examples = serialized_examples(request.input, servable.limits)
        return RegressionResponse(
            model_spec=_spec(servable, signature), result=_numbers(servable, signature, examples)
        )

    def multi_inference(self, request: MultiInferenceRequest) -> MultiInferenceResponse:
        """MultiInference: several signatures of one model on the same examples."""
        specs = [task.model_spec for task in request.tasks]
        if len({spec.name for spec in specs}) != 1:
            raise invalid("The tasks of a MultiInference should name one model, the same in each.")
        if len({spec.signature_name for spec in specs}) < len(specs):
            raise invalid("The tasks of a MultiInference should name different signatures.")
        response = MultiInferenceResponse()
        examples = serialized_examples(request.input, self._store.limits)
        for task in request.tasks:
            servable, signature = self._asked(task.model_spec)
            result = response.results.add(model_spec=_spec(servable, signature))
            if task.method_name == "tensorflow/serving/classify":
                classes = _classes(servable, signature, examples)
                result.classification_result.CopyFrom(classes)
            elif task.method_name == "tensorflow/serving/regress":
                result.regression_result.CopyFrom(_numbers(servable, signature, examples))
            else:
                raise invalid(
                    "method_name of a task should be 'tensorflow/serving/classify' or "
                    f"'tensorflow/serving/regress', not {task.method_name!r:.80}."
                )
        return response

    def metadata(self, request: GetModelMetadataRequest) -> GetModelMetadataResponse:
        """GetModelMetadata."""
        servable, _ = self._asked(request.model_spec)
        if list(request.metadata_field) != ["signature_def"]:
            raise invalid(
                "metadata_field should be ['signature_def'], not "
                f"{str(list(request.metadata_field))[:80]}."
            )
        response = GetModelMetadataResponse(model_spec=_spec(servable))
        signatures = SignatureDefMap(signature_def=servable.signature_defs)
        response.metadata["signature_def"].Pack(signatures)
        return response

    def status(self, request: GetModelStatusRequest) -> GetModelStatusResponse:
        """GetModelStatus."""
        response, spec = GetModelStatusResponse(), request.model_spec
        for version, state, code, message in self._store.status(spec.name, *_which(spec)):
            status = response.model_version_status.add(version=version, state=state)
            status.status.error_code = getattr(tf.errors, code, 0)
            status.status.error_message = message
        return response

    def health(self, request: StringValue) -> Int32Value:
        """Check of gRPC's health protocol; request and response are its messages on the wire."""
        if request.value not in ("", _PREDICTION, _MODELS):
            raise ServingError(NOT_FOUND, f"Service {request.value!r:.80} is not offered here.")
        return Int32Value(value=_SERVING)

    def _asked(self, spec: ModelSpec) -> tuple[Servable, str]:
        """The version that a request is for, and the name of its signature."""
        if not spec.name:
            raise invalid(f"model_spec.name is empty. Served: {', '.join(self._store.names())}.")
        return self._store.get(spec.name, *_which(spec)), spec.signature_name


def _model_of(request: Any) -> str:
    """The name of the model that a request is for; "" where it is for none, or for several."""
    if isinstance(request, MultiInferenceRequest):
        names = {task.model_spec.name for task in request.tasks}
        return names.pop() if len(names) == 1 else ""
    return request.model_spec.name if hasattr(request, "model_spec") else ""


def _which(spec: ModelSpec) -> tuple[int | None, str | None]:
    """Version and label that a request names; None for one that it does not."""
    version = spec.version.value if spec.HasField("version") else None
    return version, spec.version_label or None


def _spec(servable: Servable, signature: str | None = None) -> ModelSpec:
    """The model_spec of an answer; "" names the default signature, None names none."""
    name = DEFAULT_SIGNATURE if signature == "" else signature
    version = Int64Value(value=servable.version)
    return ModelSpec(name=servable.name, version=version, signature_name=name)


def _classes(servable: Servable, signature: str, examples: list[bytes]) -> ClassificationResult:
    result = ClassificationResult()
    for row in servable.classify(signature, examples):
        classes = result.classifications.add().classes
        for label, score in row:
            classes.add(label=label, score=score)
    return result


def _numbers(servable: Servable, signature: str, examples: list[bytes]) -> RegressionResult:
    result = RegressionResult()
    for number in servable.regress(signature, examples):
        result.regressions.add(value=number)
    return result
