"""Without the packages of the extra [serving] an error names it, and nothing is left behind."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from data_pipeline.errors import UserError
from export.client import predict_grpc
from export.probes import Probe, text_array
from export.warmup import write_warmup
from tests.export.conftest import rows

ROOT = Path(__file__).parents[2]


@pytest.fixture
def missing(monkeypatch):
    """(name of a module) -> it cannot be imported any more."""
    return lambda module: monkeypatch.setitem(sys.modules, module, None)


def sentence(purpose: str, module: str) -> str:
    """A pattern of the error."""
    return rf'{purpose} needs a package .*{module}.* pip install "albert-tf\[serving\]"'


@pytest.mark.parametrize("module", rows(["flask", "grpc", "waitress", "prometheus_client"], "grpc"))
def test_the_server(module, quick_python):
    """Seen before the model is."""
    code = (
        "import runpy, sys; sys.argv = ['serve', '--model=any=/nowhere']; "
        f"sys.modules['{module}'] = None; "
        "runpy.run_module('export.server', run_name='__main__', alter_sys=True)"
    )
    process = subprocess.run([quick_python, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 2, process.stderr
    assert re.search(f"^server: error: {sentence('The server', module)}\n$", process.stderr)


def test_the_client(missing):
    missing("grpc")
    with pytest.raises(UserError, match=sentence("grpc://127.0.0.1:1", "grpc")):
        predict_grpc("127.0.0.1:1", "topics", {"text": ["a"]})


def test_the_warmup_file_of_an_export(missing, tmp_path):
    missing("tensorflow_serving.apis.prediction_log_pb2")
    probe = Probe("serving_default", {"text": text_array(["a"])}, {})
    with pytest.raises(UserError, match=sentence("The warm-up file of .*", "prediction_log_pb2")):
        write_warmup(str(tmp_path), "topics", [probe])
    assert not list(tmp_path.iterdir())
