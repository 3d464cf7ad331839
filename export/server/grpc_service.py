"""TF Serving's gRPC API: Predict, Classify, Regress, MultiInference, metadata, status, health.

A call goes through `_handler` (bytes -> messages), a method of `_Service` (request -> response),
and the version's `Servable` (arrays -> arrays).
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import logging
import time
import types
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import Int32Value, StringValue
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.protobuf.meta_graph_pb2 import TensorInfo
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    input_pb2,
    model_pb2,
    predict_pb2,
    regression_pb2,
)
from tensorflow_serving.apis import get_model_metadata_pb2 as metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2 as status_pb2

from data_pipeline.errors import UserError
from export.server.listeners import address_of
from export.server.models import ModelStore
from export.server.monitoring import Monitor
from export.server.refusals import Limits, ServingError, invalid, listed
from export.server.servable import Servable
from export.signatures import DEFAULT_SIGNATURE

_PREDICTION = "tensorflow.serving.PredictionService"
_MODELS = "tensorflow.serving.ModelService"
_HEALTH = "grpc.health.v1.Health"
# The messages of gRPC's health protocol have one field each and the same wire format as these
# wrappers, so the package that defines them is not needed.
_HEALTH_MESSAGES = types.SimpleNamespace(CheckRequest=StringValue, CheckResponse=Int32Value)
_SERVING = 1  # HealthCheckResponse.ServingStatus.

_CALLS = 64  # Concurrent calls; each has a thread, even while waiting for its message.
# Maximum age of a connection, and the additional time for its running calls. Without these limits,
# calls whose message never arrives would stay open forever.
_CONNECTION_SECONDS, _LAST_CALLS_SECONDS = 60, 600


def create_server(
    host: str, port: int, store: ModelStore, monitor: Monitor
) -> tuple[grpc.Server, int]:
    """A server for the models of `store`, bound but not started, and its port; port 0 takes a free
    one. Raises UserError if it cannot listen there.
    """
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(_CALLS, "grpc"),
        options=[
            ("grpc.max_receive_message_length", store.limits.max_request_bytes),
            ("grpc.max_send_message_length", -1),  # Answers are bounded by `check_answer`.
            # Otherwise two servers could share a port, and each would receive half the requests.
            ("grpc.so_reuseport", 0),
            ("grpc.max_connection_age_ms", 1000 * _CONNECTION_SECONDS),
            ("grpc.max_connection_age_grace_ms", 1000 * _LAST_CALLS_SECONDS),
        ],
        maximum_concurrent_rpcs=_CALLS,  # Without it, further calls wait in an unbounded queue.
    )
    _add_services(server, store, monitor)
    try:
        return server, server.add_insecure_port(address_of(host, port))
    except RuntimeError:  # The error does not include the reason.
        raise UserError(
            f"--grpc_port={port}: cannot listen on {address_of(host, port)}. Is it in use? 0 takes "
            "a free port."
        ) from None


def _add_services(server: grpc.Server, store: ModelStore, monitor: Monitor) -> None:
    service = _Service(store)
    # A table, since the modules that describe the services (prediction_service_pb2) cannot be
    # imported with the protobuf of TensorFlow 2.15. Methods that are missing here, such as
    # HandleReloadConfigRequest, return UNIMPLEMENTED.
    for name, method, answer, module, messages in (
        (_PREDICTION, "Predict", service.predict, predict_pb2, "Predict"),
        (_PREDICTION, "Classify", service.classify, classification_pb2, "Classification"),
        (_PREDICTION, "Regress", service.regress, regression_pb2, "Regression"),
        (_PREDICTION, "MultiInference", service.multi_inference, inference_pb2, "MultiInference"),
        (_PREDICTION, "GetModelMetadata", service.metadata, metadata_pb2, "GetModelMetadata"),
        (_MODELS, "GetModelStatus", service.status, status_pb2, "GetModelStatus"),
        (_HEALTH, "Check", service.health, _HEALTH_MESSAGES, "Check"),
    ):
        classes = getattr(module, f"{messages}Request"), getattr(module, f"{messages}Response")
        # Metadata, status and health compute nothing, so they do not wait for other requests.
        is_short = method in ("GetModelMetadata", "GetModelStatus", "Check")
        held = contextlib.nullcontext() if is_short else store.computing
        handle = _handler(method, answer, *classes, held, monitor)
        # Not the generated add_..._to_server(), which lets grpc parse the messages: grpc answers
        # malformed ones with INTERNAL, like a server error, and they would not be counted.
        handlers = {method: grpc.unary_unary_rpc_method_handler(handle)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))


def _handler(
    method: str,
    answer: Callable[[Any, Any], None],
    request_class: Any,
    response_class: Any,
    held: contextlib.AbstractContextManager,
    monitor: Monitor,
) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    """A handler from bytes to bytes, which enters the context `held` while it works."""

    def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
        start, model, code, message, sent = time.perf_counter(), "", "OK", "", b""
        try:
            # Parsing and creating messages also needs memory, so do it within the context.
            with held:
                request, response = request_class.FromString(data), response_class()
                # Set before answering, so that a refused request also counts for its model.
                model = _model_of(request)
                answer(request, response)
                sent = response.SerializeToString()
        except DecodeError:
            code, message = "INVALID_ARGUMENT", f"The message is not a {request_class.__name__}."
        except ServingError as error:
            code, message = error.code, error.message
        except Exception as error:
            # grpc would send the exception's text, which may contain paths of this machine.
            logging.exception("internal error")
            code, message = "INTERNAL", f"Internal error: {type(error).__name__}."
        monitor.record("GRPC", method.lower(), model, code, time.perf_counter() - start)
        if code != "OK":
            # Last, and outside the try block, since it ends the call by raising an exception.
            context.abort(getattr(grpc.StatusCode, code), message)
        return sent

    return handle


def _model_of(request: Any) -> str:
    """The name of the model that a request is for; "" if it names none, or several."""
    if hasattr(request, "tasks"):
        names = {task.model_spec.name for task in request.tasks}
        return names.pop() if len(names) == 1 else ""
    return request.model_spec.name if hasattr(request, "model_spec") else ""


class _Service:
    """The methods of the services: each fills the response to a request, or raises ServingError."""

    # Messages are typed Any, since protobuf's generated classes have no type information.

    def __init__(self, store: ModelStore) -> None:
        self._store = store

    def predict(self, request: Any, response: Any) -> None:
        servable, signature = self._asked(request.model_spec)
        infos, wanted = servable.signature_def(signature).outputs, list(request.output_filter)
        unknown = set(wanted) - set(infos)
        if unknown:
            raise invalid(f"output_filter names {listed(unknown)}; outputs are: {listed(infos)}.")
        if len(set(wanted)) < len(wanted):
            raise invalid("output_filter names an output twice.")
        read = functools.partial(to_array, limits=servable.limits)
        outputs = servable.predict(signature, request.inputs, read)
        response.model_spec.CopyFrom(_spec(servable, signature))
        for name in wanted or outputs:  # An empty filter selects all outputs.
            value, dtype = outputs[name], infos[name].dtype
            proto = tf.make_tensor_proto(value, dtype=dtype, shape=value.shape)
            response.outputs[name].CopyFrom(proto)

    def classify(self, request: Any, response: Any) -> None:
        servable, signature = self._asked(request.model_spec)
        response.model_spec.CopyFrom(_spec(servable, signature))
        examples = serialized_examples(request.input, servable.limits)
        _add_classes(response.result, servable.classify(signature, examples))

    def regress(self, request: Any, response: Any) -> None:
        servable, signature = self._asked(request.model_spec)
        response.model_spec.CopyFrom(_spec(servable, signature))
        examples = serialized_examples(request.input, servable.limits)
        _add_numbers(response.result, servable.regress(signature, examples))

    def multi_inference(self, request: Any, response: Any) -> None:
        """Runs several signatures of one model on the same examples."""
        specs = [task.model_spec for task in request.tasks]
        # Both rules are TF Serving's.
        if len({spec.name for spec in specs}) != 1:
            raise invalid("The tasks of a MultiInference should all name the same model.")
        if len({spec.signature_name for spec in specs}) < len(specs):
            raise invalid("The tasks of a MultiInference should name different signatures.")
        examples = serialized_examples(request.input, self._store.limits)
        for task in request.tasks:
            servable, signature = self._asked(task.model_spec)
            result = response.results.add(model_spec=_spec(servable, signature))
            if task.method_name == "tensorflow/serving/classify":
                answer = servable.classify(signature, examples)
                _add_classes(result.classification_result, answer)
            elif task.method_name == "tensorflow/serving/regress":
                _add_numbers(result.regression_result, servable.regress(signature, examples))
            else:
                raise invalid(
                    "method_name of a task should be 'tensorflow/serving/classify' or "
                    f"'tensorflow/serving/regress', not {task.method_name!r:.80}."
                )

    def metadata(self, request: Any, response: Any) -> None:
        servable, _ = self._asked(request.model_spec)
        fields = list(request.metadata_field)
        if fields != ["signature_def"]:
            raise invalid(f"metadata_field should be ['signature_def'], not {fields!s:.80}.")
        response.model_spec.CopyFrom(_spec(servable))
        signatures = metadata_pb2.SignatureDefMap(signature_def=servable.signature_defs)
        response.metadata["signature_def"].Pack(signatures)

    def status(self, request: Any, response: Any) -> None:
        spec = request.model_spec
        for version, state, code, message in self._store.status(spec.name, *_which(spec)):
            row = response.model_version_status.add(version=version, state=state)
            # TensorFlow uses gRPC's code numbers: tf.errors.UNKNOWN is 2.
            row.status.error_code = getattr(tf.errors, code)
            row.status.error_message = message

    def health(self, request: StringValue, response: Int32Value) -> None:
        # "" means the server as a whole, which answers only after its models are loaded.
        if request.value not in ("", _PREDICTION, _MODELS):
            raise ServingError("NOT_FOUND", f"Service {request.value!r:.80} is not supported.")
        response.value = _SERVING

    def _asked(self, spec: model_pb2.ModelSpec) -> tuple[Servable, str]:
        """The version that a request is for, and the name of its signature."""
        if not spec.name:
            raise invalid(f"model_spec.name is empty. Served: {', '.join(self._store.names())}.")
        return self._store.get(spec.name, *_which(spec)), spec.signature_name


def _which(spec: model_pb2.ModelSpec) -> tuple[int | None, str | None]:
    """Version and label in a request; None for what it does not name."""
    # protobuf returns 0 for a missing version; HasField distinguishes it from version 0.
    version = spec.version.value if spec.HasField("version") else None
    return version, spec.version_label or None


def _spec(servable: Servable, signature: str | None = None) -> model_pb2.ModelSpec:
    """The model_spec of an answer; signature "" is the default one, None leaves it out."""
    name = DEFAULT_SIGNATURE if signature == "" else signature
    version = {"value": servable.version}
    return model_pb2.ModelSpec(name=servable.name, version=version, signature_name=name)


def _add_classes(result: Any, rows: list[list[tuple[str, float]]]) -> None:
    for row in rows:
        classes = result.classifications.add().classes
        for label, score in row:
            classes.add(label=label, score=score)


def _add_numbers(result: Any, numbers: list[float]) -> None:
    for number in numbers:
        result.regressions.add(value=number)


def to_array(name: str, proto: TensorProto, info: TensorInfo, limits: Limits) -> np.ndarray:
    """The tensor of an input as an array of the signature's type; texts are bytes. Raises
    ServingError if its type, size or values do not fit.
    """
    wanted, shape = _type_name(info.dtype), [dim.size for dim in proto.tensor_shape.dim]
    if proto.dtype != info.dtype:
        raise invalid(f"Input {name!r} should be {wanted}; received {_type_name(proto.dtype)}.")
    # Before make_ndarray(), which repeats the last value to fill the shape: a TensorProto may omit
    # repeated values, so a few bytes can claim any shape.
    limits.check_shape(name, tuple(shape))
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, OverflowError):
        text = f"Input {name!r} holds values that do not fit its shape {shape!s:.80} of {wanted}."
        raise invalid(text) from None


def _type_name(number: int) -> str:
    try:
        return tf.as_dtype(number).name
    except TypeError:  # Clients may send an unknown dtype number.
        return f"type {number}"


def serialized_examples(request_input: input_pb2.Input, limits: Limits) -> list[bytes]:
    """The tf.Examples of a request, each merged with the features of their shared context. Raises
    ServingError if there are none or too many.
    """
    shared = request_input.example_list_with_context
    # Input is a oneof: of its two lists, one is always empty.
    examples = shared.examples or request_input.example_list.examples
    if not examples:
        raise invalid("The input holds no example: fill input.example_list.")
    limits.check_rows(len(examples))
    return limits.bounded_examples(_merged(shared.context, example) for example in examples)


def _merged(context: tf.train.Example, example: tf.train.Example) -> bytes:
    # Features are a map, so features of the example replace context features of the same name.
    merged = tf.train.Example()
    merged.MergeFrom(context)
    merged.MergeFrom(example)
    return merged.SerializeToString()
