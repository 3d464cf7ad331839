"""The models of a server: from flags and TF Serving's own file; versions found, loaded, swapped."""

import os
import shutil
import threading

import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from export.probes import Probe, text_array
from export.saved_model import existing_versions
from export.server import models, servable
from export.server.models import ModelConfig, ModelStore, parse_models, read_config_file
from export.server.refusals import ServingError
from export.warmup import WARMUP_FILE, check_warmup, write_warmup
from tests.export.server.clients import PREDICT, call
from tests.export.server.conftest import save_tiny, store_of


def test_model_flags():
    found = parse_models(["a=/x", "b-2.c=/y=z"])
    assert found == [ModelConfig("a", "/x"), ModelConfig("b-2.c", "/y=z")]
    for arguments, match in (
        *(([], "No model"), (["x"], "NAME=PATH")),
        *((["a/b=/x"], "NAME=PATH"), (["a=/x", "a=/y"], "twice")),
    ):
        with pytest.raises(UserError, match=match):
            ModelStore(parse_models(arguments))


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, [7]),
        ({"latest": 2}, [2, 7]),
        ({"latest": 0}, [1, 2, 7]),
        ({"specific": (7, 1, 9)}, [1, 7]),
    ],
)
def test_the_versions_that_are_served(settings, wanted):
    assert ModelConfig("m", "/m", **settings).wanted([1, 2, 7]) == wanted


def test_tf_servings_own_file(tmp_path):
    path = tmp_path / "models.config"
    path.write_text(
        """model_config_list {
          config { name: "a" base_path: "/a" model_platform: "tensorflow" }
          config { name: "b" base_path: "/b"
                   model_version_policy { specific { versions: 3 versions: 5 } }
                   version_labels { key: "stable" value: 3 } }
          config { name: "c" base_path: "/c" model_version_policy { all {} } }
        }"""
    )
    assert read_config_file(str(path)) == [
        ModelConfig("a", "/a"),
        ModelConfig("b", "/b", 1, (3, 5), {"stable": 3}),
        ModelConfig("c", "/c", 0),
    ]
    path.write_text("model_config_list {")
    with pytest.raises(UserError, match="is not a ModelServerConfig of TF Serving in text"):
        read_config_file(str(path))
    for config, missing in (('base_path: "/a"', "name"), ('name: "a"', "base_path")):
        path.write_text(f"model_config_list {{ config {{ {config} }} }}")
        with pytest.raises(UserError, match=f"a model has no {missing}"):
            read_config_file(str(path))


def test_numbers_that_no_client_can_name_are_not_versions(tmp_path):
    for name in ("3", str(2**63 - 1), str(2**63), "9" * 200, "007", "x"):
        (tmp_path / name).mkdir()
    assert existing_versions(str(tmp_path)) == [3, 2**63 - 1]


def test_picks_up_a_new_version_and_survives_a_broken_one(tiny, tmp_path):
    shutil.copytree(tiny / "1", tmp_path / "1")
    store = store_of(tmp_path)
    (tmp_path / ".tmp-3").mkdir()
    (tmp_path / "3").mkdir()
    for _ in range(7):
        store.refresh()
    assert store.get("m").version == 1
    (broken, served) = store.status("m")
    assert broken[:3] == (3, "END", "UNKNOWN")
    assert served == (1, "AVAILABLE", "OK", "")
    shutil.rmtree(tmp_path / "3")
    os.rename(shutil.copytree(tiny / "2", tmp_path / ".tmp-12"), tmp_path / "12")
    store.refresh()
    assert store.get("m") is store.get("m", 12)
    assert store.status("m") == [(12, "AVAILABLE", "OK", "")]  # The failure left with its folder.
    with pytest.raises(ServingError, match="version 12 is"):
        store.get("m", 1)


@pytest.mark.parametrize(("make", "match"), [(False, "no version folder"), (True, "does not load")])
def test_a_server_does_not_start_without_a_model(tmp_path, make, match):
    if make:
        (tmp_path / "1").mkdir()
    with pytest.raises(UserError, match=match):
        store_of(tmp_path)


def test_a_server_starts_with_an_older_version_where_the_newest_is_broken(tiny, tmp_path):
    shutil.copytree(tiny, tmp_path, dirs_exist_ok=True)
    for broken in ("3", "5"):
        (tmp_path / broken).mkdir()
    store = store_of(tmp_path)
    assert [row[:2] for row in store.status("m")] == [
        (5, "END"), (3, "END"), (2, "AVAILABLE")
    ]  # fmt: skip
    shutil.copytree(tiny / "1", tmp_path / "5", dirs_exist_ok=True)
    store.refresh()
    assert store.get("m").version == 5 and 2 not in [row[0] for row in store.status("m")]
    with pytest.raises(UserError, match="does not load"):  # Others were not asked for.
        store_of(tmp_path, specific=(3,))


def test_warm_up_requests_are_answered_before_a_version_is_available(tiny, tmp_path, monkeypatch):
    shutil.copytree(tiny, tmp_path, dirs_exist_ok=True)
    probe = Probe("serving_default", {"text": text_array(["abc"])}, {})
    write_warmup(str(tmp_path / "2"), "m", [probe, probe])
    store = ModelStore([ModelConfig("m", str(tmp_path))])
    answered = []

    def noted(path, signatures):
        count = check_warmup(path, signatures)
        answered.append((path, count, store._models["m"].loaded))
        return count

    monkeypatch.setattr(servable, "check_warmup", noted)
    store.load()
    assert answered == [(str(tmp_path / "2"), 2, {})]
    assert store.status("m") == [(2, "AVAILABLE", "OK", "")]


def test_a_bad_warm_up_record_keeps_a_version_from_loading(tiny, tmp_path):
    """As in TF Serving."""
    shutil.copytree(tiny, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "2" / WARMUP_FILE
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"\xff")
    store = store_of(tmp_path)
    assert store.get("m").version == 1 and store.status("m", 2)[0][1] == "END"


def test_a_version_that_failed_is_tried_again_once_it_was_repaired(tiny, tmp_path):
    shutil.copytree(tiny / "1", tmp_path / "1")
    store = store_of(tmp_path)
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "saved_model.pb").write_bytes(b"half of one")
    for _ in range(7):
        store.refresh()
    assert store.get("m").version == 1 and store.status("m", 2)[0][1] == "END"
    shutil.copytree(tiny / "2", tmp_path / "2", dirs_exist_ok=True)  # The copy is finished.
    store.refresh()
    assert store.get("m").version == 2 and len(store.status("m")) == 1


@pytest.fixture(scope="module")
def small(tiny):
    store = ModelStore([ModelConfig("m", str(tiny)), ModelConfig("a", str(tiny))])
    store.load()
    return store


def test_what_is_not_served(small):
    assert small.names() == ["a", "m"]
    with pytest.raises(ServingError, match="^Model 'x' is not served here. .*: a, m.$") as error:
        small.get("x")
    assert error.value.code == "NOT_FOUND"
    with pytest.raises(ServingError, match="^Version 4 of model 'm' is not loaded; version 2 is.$"):
        small.get("m", 4)
    assert small.get("m", 2) is small.get("m")
    assert small.status("m") == small.status("m", 2) == [(2, "AVAILABLE", "OK", "")]
    with pytest.raises(ServingError, match="^Version 4 of model 'm' does not exist") as error:
        small.status("m", 4)
    assert error.value.code == "NOT_FOUND"


def test_a_version_is_loaded_once_and_tried_five_times(tiny, tmp_path, monkeypatch):
    shutil.copytree(tiny / "1", tmp_path / "3")
    store, loaded = store_of(tmp_path), []

    def fail(name, version, path, limits):
        loaded.append((name, version, path))
        raise ValueError("broken\n  model")

    monkeypatch.setattr(models, "Servable", fail)
    store.refresh()
    assert not loaded
    (tmp_path / "10").mkdir()
    for _ in range(9):
        store.refresh()
    assert loaded == [("m", 10, f"{tmp_path}/10")] * 5
    assert store.status("m", 10) == [(10, "END", "UNKNOWN", "broken model")]


def test_the_store_looks_for_versions_until_it_is_stopped(tiny, monkeypatch):
    store = ModelStore([ModelConfig("m", str(tiny))], poll_seconds=0.001)
    looked = threading.Event()
    monkeypatch.setattr(store, "refresh", looked.set)
    store.start()
    assert looked.wait(30)
    store.stop()
    assert not store._thread.is_alive()
    ModelStore([ModelConfig("m", str(tiny))]).stop()  # It was never started.


def test_under_load_every_request_is_answered(running):
    """New, broken and deleted versions; three threads ask all the while."""
    stop, answers, versions = threading.Event(), [], running.folder

    def ask():
        running.store.refresh()
        answers.append(call(running, PREDICT, {"instances": ["abc"]}))
        return answers[-1][1]["predictions"][0]["version"]

    def client():
        while not stop.is_set():
            answers.append(call(running, PREDICT, {"instances": ["abc"]}))

    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        served = [ask()]
        save_tiny(versions.parent / "tmp", 3)
        os.rename(versions.parent / "tmp", versions / "3")
        served.append(ask())
        (versions / "4").mkdir()
        served.append(ask())
        shutil.rmtree(versions / "4")
        shutil.rmtree(versions / "3")
        served.append(ask())
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert served == [2, 3, 3, 2]
    assert {status for status, _ in answers} == {200}
    predictions = [answer["predictions"][0] for _, answer in answers]
    assert {prediction["version"] for prediction in predictions} == {2, 3}
    assert all(prediction["scores"] == [7, 3] for prediction in predictions)
    assert [row[0] for row in running.store.status("tiny")] == [2, 1]
