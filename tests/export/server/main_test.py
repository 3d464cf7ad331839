"""The server as a process: starts, answers on both ports, follows new versions, stops cleanly."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import commands
from data_pipeline.errors import UserError
from export.client import predict_grpc, predict_rest, predict_rows

TEXTS = ["the cat", "Café in 2010, 3.0"]


ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
# Those that lead from a model folder to an answer.
COMMANDS = re.search(r"^```sh\n(.*?)^```", DOCUMENT, re.M | re.S)[1].splitlines()


def documented(number, *replacements):
    """The words of a documented command; replacements are (part, part instead of it)."""
    command = COMMANDS[number].removesuffix(" &")
    for old, new in replacements:
        assert old in command
        command = command.replace(old, str(new))
    return shlex.split(command)


@pytest.fixture(scope="module")
def server(exports, tmp_path_factory):
    """A running server process: (process, ready file's content, folder of the model `topics`)."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(exports.base("classifier"), folder / "topics")
    _, name, *flags = documented(2, ("work/models", folder))
    command = [
        *(sys.executable, "-m", commands.COMMANDS[name], *flags, "--rest_port=0", "--grpc_port=0"),
        *("--poll_seconds=0.1", f"--ready_file={folder / 'ready.json'}"),
        f"--model=words={exports.base('masked_lm')}",
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: (folder / "ready.json").exists() or process.poll() is not None)
        yield process, json.loads((folder / "ready.json").read_text()), folder / "topics"
    finally:
        process.kill()
        process.wait()


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def test_predict_asks_every_kind_of_model_the_same_way(server, exports):
    _, ready, _ = server
    for name, task in (("topics", "classifier"), ("words", "masked_lm")):
        rows = [{"text": "the [MASK] of"}, {"text": "a [MASK] [MASK]"}]
        answers = [
            predict_rows(f"{ready['rest']}/v1/models/{name}", rows),
            predict_rows(f"grpc://{ready['grpc']}/{name}", rows),
            predict_rows(exports.base(task), rows),
        ]
        key = "logits" if name == "topics" else "top_probabilities"
        for answer in answers[1:]:
            assert set(answer[0]) == set(answers[0][0])
            np.testing.assert_allclose(
                [r[key] for r in answer], [r[key] for r in answers[0]], atol=1e-5
            )


def test_from_a_model_folder_to_an_answer_in_five_commands(server, model_dirs, result_of, tmp_path):
    """Those of docs/serving.md; the third is what started the server."""
    _, ready, _ = server
    assert len(COMMANDS) == 5
    folders = ("work/classifier/model", model_dirs["classifier"]), ("work/models", tmp_path)
    address = "http://127.0.0.1:8501", ready["rest"]
    outputs = []
    for number, replacements in ((0, folders), (1, folders[1:]), (3, [address])):
        command, name, *arguments = documented(number, *replacements)
        assert command == "albert-tf"
        result = result_of(commands.COMMANDS[name], *arguments)
        assert result.returncode == 0, result.stderr
        outputs.append(result.stdout)
    assert f"exported {tmp_path}/topics/1" in outputs[0]
    assert outputs[1] == outputs[2] and "Opens a file." in outputs[1]
    curl = subprocess.run(documented(4, address), capture_output=True, text=True)
    assert curl.returncode == 0, curl.stderr
    [row] = json.loads(curl.stdout)["predictions"]
    assert row["label"] in outputs[1].split()


def test_client_errors_are_one_sentence(server):
    _, ready, _ = server
    for model, match in (
        (f"{ready['rest']}/v1/models/nope", "answered 404"),
        (f"grpc://{ready['grpc']}/nope", "answered NOT_FOUND: Model 'nope' is not served here"),
        ("grpc://127.0.0.1:9/m", "answered UNAVAILABLE"),
    ):
        with pytest.raises(UserError, match=match):
            predict_rows(model, [{"text": "a"}])


def test_a_new_version_is_served_once_its_folder_has_a_number(server):
    _, ready, folder = server
    os.rename(shutil.copytree(folder / "1", folder / ".tmp-2"), folder / "2")

    def serves_2():
        with urllib.request.urlopen(f"{ready['rest']}/v1/models/topics") as response:
            return json.load(response)["model_version_status"][0]["version"] == "2"

    wait_for(serves_2)
    assert len(predict_rest(ready["rest"], "topics", TEXTS)) == 2


def test_sigterm_stops_it_and_frees_the_port(server):
    process, ready, _ = server
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    (line,) = process.stdout.read().splitlines()
    assert line.startswith("serving topics, words at http://127.0.0.1:")
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(ready["rest"].rpartition(":")[2]))) != 0


class Waits(tf.Module):
    """A model that answers after so many seconds."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "seconds")])
    def wait(self, seconds):
        end = tf.timestamp() + tf.cast(tf.reduce_max(seconds), tf.float64)
        (steps,) = tf.while_loop(lambda _: tf.timestamp() < end, lambda step: [step + 1], [0])
        return {"steps": tf.fill(tf.shape(seconds), steps)}


@pytest.fixture
def slow_server(tmp_path, quick_python):
    """A process that serves `Waits`, the address of its method by REST, and that of gRPC."""
    module = Waits()
    signatures = {"serving_default": module.wait}
    tf.saved_model.save(module, str(tmp_path / "m" / "1"), signatures=signatures)
    ready = tmp_path / "ready.json"
    command = [
        *(quick_python, "-m", "export.server", f"--model=m={tmp_path / 'm'}"),
        *("--rest_port=0", "--grpc_port=0", f"--ready_file={ready}"),
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: ready.exists() or process.poll() is not None)
        addresses = json.loads(ready.read_text())
        yield process, f"{addresses['rest']}/v1/models/m:predict", addresses["grpc"]
    finally:
        process.kill()
        process.wait()


def ask(address, seconds):
    """The status of a request that takes so many seconds."""
    body = json.dumps({"instances": [seconds]}).encode()
    try:
        with urllib.request.urlopen(address, body, 60) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_sigterm_lets_requests_finish(slow_server):
    """Though they take longer than the five seconds that waitress gives them."""
    process, address, rpc = slow_server
    answers = []

    def ask_grpc(seconds):
        inputs = {"seconds": np.array([seconds], np.float32)}
        return predict_grpc(rpc, "m", inputs)["steps"].shape

    clients = [
        threading.Thread(target=lambda: answers.append(ask(address, 6.0))),
        threading.Thread(target=lambda: answers.append(ask_grpc(6.0))),
    ]
    for client in clients:
        client.start()
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    time.sleep(1)
    assert ask(address, 0.0) == 503
    with pytest.raises(UserError, match="answered UNAVAILABLE"):
        ask_grpc(0.0)
    assert process.poll() is None and not answers
    for client in clients:
        client.join(60)
    assert process.wait(20) == 0
    assert sorted(answers, key=str) == [(1,), 200]


def test_a_second_signal_does_not_wait(slow_server):
    process, address, rpc = slow_server
    answers = []
    with pytest.raises(UserError, match="answered DEADLINE_EXCEEDED"):
        predict_grpc(rpc, "m", {"seconds": np.array([2.0], np.float32)}, timeout=0.5)

    def client_of_a_long_request():
        with contextlib.suppress(OSError):  # The connection ends with the process.
            answers.append(ask(address, 60.0))

    client = threading.Thread(target=client_of_a_long_request)
    client.start()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: ask(address, 0.0) == 503, 5)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == -signal.SIGINT
    client.join(60)
    assert not answers


@pytest.mark.parametrize(
    "name, other",
    [("rest_port", "grpc_port"), pytest.param("grpc_port", "rest_port", marks=pytest.mark.table)],
)
def test_a_port_in_use_is_found_before_models_are_loaded(quick_python, name, other):
    """Nothing lies where the model should, which would be the message otherwise."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = ["--model=m=/nowhere", f"--{name}={port}", f"--{other}=0"]
        command = [quick_python, "-m", "export.server", *flags]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 2
    assert f"--{name}={port}: cannot listen on 127.0.0.1:{port}" in process.stderr
