"""The files for TensorFlow Serving are what the server will parse."""

import re
from pathlib import Path

import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from tensorflow_serving.config import model_server_config_pb2

import export
from export.server.models import read_config_file

SERVING = Path(export.__file__).parent / "serving"


def test_models_config():
    text = (SERVING / "models.config").read_text()
    config = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    for model in config.model_config_list.config:
        assert model.base_path == f"/models/{model.name}"
        assert model.model_platform == "tensorflow"


def with_defaults(name):
    """The text of a file with the defaults of its variables: ${MODEL_CONFIG:-models.config}."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", (SERVING / name).read_text())


def test_compose_mounts_the_files_it_names():
    """By their folder: of a single file the container would not see the one that replaces it."""
    assert "- .:/config:ro " in with_defaults("docker-compose.yml")


def message(**fields):
    """A new message of TF Serving's that its package for clients lacks; type by name of field."""
    file = descriptor_pb2.FileDescriptorProto(name="test.proto", syntax="proto3")
    types = descriptor_pb2.FieldDescriptorProto
    for name, members in {"Value": {"value": types.TYPE_INT64}, **fields}.items():
        made = file.message_type.add(name=name)
        for number, (member, kind) in enumerate(members.items(), 1):
            field = made.field.add(name=member, number=number, label=types.LABEL_OPTIONAL)
            if isinstance(kind, str):
                field.type, field.type_name = types.TYPE_MESSAGE, f".{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))()


def test_batching_config():
    """The message is that of TF Serving's session_bundle_config.proto, as far as it is numbers."""
    names = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads")
    types = descriptor_pb2.FieldDescriptorProto
    members = {**dict.fromkeys(names, "Value"), "pad_variable_length_inputs": types.TYPE_BOOL}
    parameters = message(BatchingParameters=members)
    text_format.Parse((SERVING / "batching.config").read_text(), parameters)
    assert all(getattr(parameters, name).value > 0 for name in names)
    # The server would pad with each tensor's first element, which is no padding to a model.
    assert not parameters.pad_variable_length_inputs


def test_monitoring_config():
    """The messages of TF Serving's monitoring_config.proto."""
    types = descriptor_pb2.FieldDescriptorProto
    members = {"enable": types.TYPE_BOOL, "path": types.TYPE_STRING}
    config = message(
        PrometheusConfig=members, MonitoringConfig={"prometheus_config": "PrometheusConfig"}
    )
    text_format.Parse((SERVING / "monitoring.config").read_text(), config)
    assert config.prometheus_config.enable
    assert config.prometheus_config.path == "/monitoring/prometheus/metrics"


def test_the_canary_is_what_the_local_server_reads():
    (model,) = read_config_file(str(SERVING / "canary.config"))
    assert model.specific == (1, 2) and model.labels == {"stable": 1, "canary": 2}


@pytest.mark.parametrize("file", ["docker-compose.yml", "kubernetes.yaml"])
def test_yaml_names_one_image_and_files_that_exist(file):
    text = with_defaults(file)
    assert all(isinstance(part, dict) for part in yaml.safe_load_all(text))
    assert "tensorflow/serving:2.20.0" in text
    # Without it a label of a version that is not loaded yet is an error, also at the start.
    assert "- --allow_version_labels_for_unavailable_models " in text
    for name in ("models.config", "batching.config", "monitoring.config"):
        assert f"=/config/{name}" in text and (SERVING / name).exists()
