"""The files for TensorFlow Serving are what the server will parse."""

import re
from pathlib import Path

import pytest
import yaml
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

import export
from export.server.models import read_config_file
from export.server.monitoring import METRICS_PATH

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


def fields_of(name):
    """The text of a configuration without comments, in one line."""
    lines = (SERVING / name).read_text().splitlines()
    return " ".join(" ".join(line for line in lines if not line.startswith("#")).split())


def test_batching_and_monitoring_config():
    """Fields of session_bundle_config.proto and monitoring_config.proto, which clients' packages
    lack. Not pad_variable_length_inputs: the server would pad with each tensor's first element.
    """
    names = ("max_batch_size", "batch_timeout_micros", "num_batch_threads", "max_enqueued_batches")
    numbers = " ".join(rf"{name} {{ value: [1-9]\d* }}" for name in names)
    assert re.fullmatch(numbers, fields_of("batching.config"))
    watched = f'enable: true path: "{METRICS_PATH}"'
    assert fields_of("monitoring.config") == f"prometheus_config {{ {watched} }}"


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
