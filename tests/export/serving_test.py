"""The files for TensorFlow Serving are what the server will parse."""

from pathlib import Path

from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

import export

SERVING = Path(export.__file__).parent / "serving"


def test_models_config():
    text = (SERVING / "models.config").read_text()
    config = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    for model in config.model_config_list.config:
        assert model.base_path == f"/models/{model.name}"
        assert model.model_platform == "tensorflow"


def test_compose_mounts_the_files_it_names():
    compose = (SERVING / "docker-compose.yml").read_text()
    for name in ("models.config", "batching.config"):
        assert f"./{name}:/config/{name}:ro" in compose
        assert (SERVING / name).exists()
