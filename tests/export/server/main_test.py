"""The server as a process: starts, answers on both ports, follows new versions, stops cleanly."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from data_pipeline.errors import UserError
from export.client import predict_grpc, predict_rest, predict_texts
from export.server.listeners import create_rest, start_grpc

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
    _, *words = documented(2, ("work/models", folder))
    command = [
        *(sys.executable, *words, "--rest_port=0", "--grpc_port=0"),
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


def test_both_faces_give_the_same_answer(server):
    _, ready, _ = server
    rows = predict_rest(ready["rest"], "topics", TEXTS)
    arrays = predict_grpc(ready["grpc"], "topics", {"text": TEXTS})
    np.testing.assert_allclose([row["logits"] for row in rows], arrays["logits"], atol=1e-6)
    assert [row["label"].encode() for row in rows] == arrays["label"].tolist()


def test_predict_asks_every_kind_of_model_the_same_way(server, exports):
    _, ready, _ = server
    for name, task in (("topics", "classifier"), ("words", "masked_lm")):
        texts = ["the [MASK] of", "a [MASK] [MASK]"]
        answers = [
            predict_texts(f"{ready['rest']}/v1/models/{name}", texts),
            predict_texts(f"grpc://{ready['grpc']}/{name}", texts),
            predict_texts(exports.base(task), texts),
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
        python, option, module, *arguments = documented(number, *replacements)
        assert (python, option) == ("python", "-m")
        result = result_of(module, *arguments)
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
        (f"grpc://{ready['grpc']}/nope", "answered NOT_FOUND"),
        ("http://127.0.0.1:9/v1/models/m", "does not answer"),
        ("grpc://127.0.0.1:9/m", "answered UNAVAILABLE"),
        (ready["rest"], "should look like http"),
        ("grpc://127.0.0.1:9", "should look like grpc"),
        ("/nowhere", "no SavedModel"),
    ):
        with pytest.raises(UserError, match=match):
            predict_texts(model, ["a"])


def test_ports_in_use_are_refused(server, store):
    _, ready, _ = server
    for start, address in ((start_grpc, ready["grpc"]), (create_rest, ready["rest"])):
        port = int(address.rpartition(":")[2])
        with pytest.raises(UserError, match=f"_port={port}: cannot listen"):
            start(store, "127.0.0.1", port)


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
