"""Weights by name, from a local mirror of the Hugging Face hub: downloaded once, then cached."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import flask
import numpy as np
import pytest
import werkzeug.serving

from albert_tf import AlbertClassifier, AlbertEncoder, from_preset, preset_vocabulary
from albert_tf.checkpoints import huggingface
from albert_tf.errors import UserError

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "goldens" / "hf_tiny" / "pretraining"
PROGRAM = """
import json, sys, time
time.sleep = lambda seconds: None  # The hub's library waits between its attempts.
from albert_tf import AlbertClassifier, from_preset, preset_vocabulary
from albert_tf.errors import UserError
try:
    model = from_preset("albert-base-v2", AlbertClassifier, num_classes=3)
    path = preset_vocabulary("albert-base-v2")
    print(json.dumps([float(model.encoder.pooler.kernel[0, 0]), open(path).read()]))
except UserError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture
def mirror(tmp_path) -> Iterator[tuple[str, list[str]]]:
    """Address of a server with the files of one repository, and the log of its requests."""
    files = {name: (GOLDEN / name).read_bytes() for name in ("config.json", "model.safetensors")}
    files["spiece.model"] = b"pieces"
    app, requests = flask.Flask("mirror"), []

    @app.route("/albert/albert-base-v2/resolve/main/<name>")
    def resolve(name):
        requests.append(f"{flask.request.method} {name}")
        response = flask.Response(files[name], mimetype="application/octet-stream")
        response.headers["ETag"] = f'"{hashlib.sha256(files[name]).hexdigest()}"'
        response.headers["X-Repo-Commit"] = "1" * 40
        return response

    server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    thread.join()


def run(cache: Path, **environment: str):
    """What the program above prints in a process of its own, as the hub reads its environment."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_a_published_model_is_downloaded_once(mirror, tmp_path):
    address, requests = mirror
    encoder = from_preset(str(GOLDEN))
    expected = [float(encoder.pooler.kernel[0, 0]), "pieces"]
    assert run(tmp_path / "cache", HF_ENDPOINT=address) == expected
    assert sorted(line for line in requests if line.startswith("GET")) == [
        "GET config.json",
        "GET model.safetensors",
        "GET spiece.model",
    ]
    assert run(tmp_path / "cache", HF_ENDPOINT=address, HF_HUB_OFFLINE="1") == expected
    assert run(tmp_path / "cache", HF_ENDPOINT="http://127.0.0.1:9") == expected


@pytest.mark.parametrize("environment", [{"HF_HUB_OFFLINE": "1"}, {}])
def test_offline_without_a_cache(tmp_path, environment):
    message = run(tmp_path / "cache", HF_ENDPOINT="http://127.0.0.1:9", **environment)
    assert message.startswith(
        "albert/albert-base-v2 is not in the cache and cannot be downloaded: "
    )
    assert "pass the path of a folder with config.json, model.safetensors" in message


def test_a_local_folder(tiny_config, tmp_path):
    encoder = AlbertEncoder(tiny_config)
    huggingface.save(encoder, str(tmp_path))
    classifier = from_preset(str(tmp_path), AlbertClassifier, num_classes=2)
    np.testing.assert_array_equal(classifier.encoder.pooler.kernel, encoder.pooler.kernel)
    with_dropout = from_preset(str(tmp_path), config=tiny_config.replace(hidden_dropout_prob=0.2))
    assert with_dropout.config.hidden_dropout_prob == 0.2
    with pytest.raises(UserError, match="has no vocabulary beside it"):
        preset_vocabulary(str(tmp_path))
    with pytest.raises(UserError, match="checkpoint albert-huge does not exist"):
        from_preset("albert-huge")
