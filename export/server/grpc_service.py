"""TF Serving's gRPC API: Predict, Classify, GetModelMetadata and GetModelStatus."""

from __future__ import annotations

import functools
from collections.abc import Callable

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    input_pb2,
    model_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from export.server.classify import classify
from export.server.store import INVALID_ARGUMENT, ModelStore, Servable, ServingError
from export.signatures import DEFAULT_SIGNATURE


def add_services(server: grpc.Server, store: ModelStore) -> None:
    """Registers both services, answering for the models of `store`."""
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(_Prediction(store), server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(_ModelStatus(store), server)


def _with_status(method: Callable) -> Callable:
    """A method of a service that answers a ServingError with its status code and message."""

    @functools.wraps(method)
    def guarded(self, request, context):
        try:
            return method(self, request)
        except ServingError as error:
            context.abort(getattr(grpc.StatusCode, error.code), error.message)

    return guarded


class _Prediction(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Predict, Classify and GetModelMetadata; the names of methods are TF Serving's."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store

    @_with_status
    def Predict(self, request: predict_pb2.PredictRequest) -> predict_pb2.PredictResponse:
        servable = _servable(self._store, request.model_spec)
        signature = request.model_spec.signature_name
        inputs = {name: _to_array(name, proto) for name, proto in request.inputs.items()}
        _check_dtypes(servable, signature, inputs)
        outputs = servable.predict(signature, inputs)
        unknown = set(request.output_filter) - set(outputs)
        if unknown:
            raise ServingError(
                INVALID_ARGUMENT,
                f"output_filter names {', '.join(sorted(unknown))}; outputs: "
                f"{', '.join(sorted(outputs))}.",
            )
        response = predict_pb2.PredictResponse()
        _fill_spec(response.model_spec, servable, signature)
        infos = servable.signature_def(signature).outputs
        for name in request.output_filter or outputs:
            value, dtype = outputs[name], infos[name].dtype
            response.outputs[name].CopyFrom(
                tf.make_tensor_proto(value, dtype=dtype, shape=value.shape)
            )
        return response

    @_with_status
    def Classify(
        self, request: classification_pb2.ClassificationRequest
    ) -> classification_pb2.ClassificationResponse:
        servable = _servable(self._store, request.model_spec)
        signature = request.model_spec.signature_name
        classes, scores = classify(servable, signature, _serialized_examples(request.input))
        response = classification_pb2.ClassificationResponse()
        _fill_spec(response.model_spec, servable, signature)
        for row_classes, row_scores in zip(classes, scores):
            row = response.result.classifications.add()
            for label, score in zip(row_classes, row_scores):
                row.classes.add(label=label.decode("utf-8", errors="replace"), score=score)
        return response

    @_with_status
    def GetModelMetadata(
        self, request: get_model_metadata_pb2.GetModelMetadataRequest
    ) -> get_model_metadata_pb2.GetModelMetadataResponse:
        servable = _servable(self._store, request.model_spec)
        if list(request.metadata_field) != ["signature_def"]:
            raise ServingError(
                INVALID_ARGUMENT,
                f"metadata_field should be ['signature_def'], not {list(request.metadata_field)}.",
            )
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = servable.name
        response.model_spec.version.value = servable.version
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name, definition in servable.signature_defs.items():
            signatures.signature_def[name].CopyFrom(definition)
        response.metadata["signature_def"].Pack(signatures)
        return response


class _ModelStatus(model_service_pb2_grpc.ModelServiceServicer):
    """GetModelStatus."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store

    @_with_status
    def GetModelStatus(
        self, request: get_model_status_pb2.GetModelStatusRequest
    ) -> get_model_status_pb2.GetModelStatusResponse:
        response = get_model_status_pb2.GetModelStatusResponse()
        rows = self._store.status(request.model_spec.name, _version(request.model_spec))
        for version, state, code, message in rows:
            status = response.model_version_status.add(version=version, state=state)
            status.status.error_code = getattr(tf.errors, code, 0)
            status.status.error_message = message
        return response


def _servable(store: ModelStore, spec: model_pb2.ModelSpec) -> Servable:
    if not spec.name:
        raise ServingError(
            INVALID_ARGUMENT, f"model_spec.name is empty. Served: {', '.join(store.names())}."
        )
    return store.get(spec.name, _version(spec))


def _version(spec: model_pb2.ModelSpec) -> int | None:
    if spec.version_label:
        raise ServingError(
            INVALID_ARGUMENT,
            f"version_label {spec.version_label!r} is not supported: leave it out, or give a "
            "version number.",
        )
    return spec.version.value if spec.HasField("version") else None


def _fill_spec(spec: model_pb2.ModelSpec, servable: Servable, signature: str) -> None:
    spec.name = servable.name
    spec.version.value = servable.version
    spec.signature_name = signature or DEFAULT_SIGNATURE


def _to_array(name: str, proto: tensor_pb2.TensorProto) -> np.ndarray:
    """A tensor of a request; raises ServingError when it is malformed."""
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise ServingError(
            INVALID_ARGUMENT, f"Input {name!r} is no valid tensor: {message}"
        ) from None


def _check_dtypes(servable: Servable, signature: str, inputs: dict[str, np.ndarray]) -> None:
    """Raises ServingError unless types are those of the signature, as TF Serving wants them."""
    infos = servable.signature_def(signature).inputs
    for name, value in inputs.items():
        if name in infos and tf.as_dtype(value.dtype) != tf.as_dtype(infos[name].dtype):
            wanted = tf.as_dtype(infos[name].dtype).name
            raise ServingError(
                INVALID_ARGUMENT,
                f"Input {name!r} should be {wanted}; received {tf.as_dtype(value.dtype).name}.",
            )


def _serialized_examples(request_input: input_pb2.Input) -> list[bytes]:
    """The tf.Examples of a request, each with the features of the context they share."""
    kind = request_input.WhichOneof("kind")
    if kind == "example_list":
        examples = request_input.example_list.examples
        serialized = [example.SerializeToString() for example in examples]
    elif kind == "example_list_with_context":
        listed = request_input.example_list_with_context
        serialized = [_merged(listed.context, example) for example in listed.examples]
    else:
        serialized = []
    if not serialized:
        raise ServingError(INVALID_ARGUMENT, "The input holds no example: fill input.example_list.")
    return serialized


def _merged(context: tf.train.Example, example: tf.train.Example) -> bytes:
    merged = tf.train.Example()
    for part in (context, example):
        for name, feature in part.features.feature.items():
            merged.features.feature[name].CopyFrom(feature)
    return merged.SerializeToString()
