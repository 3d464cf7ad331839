"""Finding, loading and swapping versions."""

import os
import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from export.server import store as model_store
from export.server.errors import ServingError
from export.server.models import ModelConfig
from export.server.store import ModelStore


def test_picks_up_a_new_version_and_survives_a_broken_one(exports, tmp_path):
    base = tmp_path / "m"
    shutil.copytree(exports.paths["preprocessor"], base / "1")
    store = ModelStore([ModelConfig("m", str(base))])
    (base / ".tmp-3").mkdir()
    (base / "3").mkdir()
    for _ in range(7):
        store.refresh()
    assert store.get("m").version == 1
    (broken, served) = store.status("m")
    assert broken[:3] == (3, "END", "UNKNOWN")
    assert served[:2] == (1, "AVAILABLE")
    shutil.rmtree(base / "3")
    os.rename(shutil.copytree(exports.paths["preprocessor"], base / ".tmp-12"), base / "12")
    store.refresh()
    assert store.get("m").version == 12
    assert store.get("m", 12).name == "m"
    with pytest.raises(ServingError, match="version 12 is"):
        store.get("m", 1)


@pytest.mark.parametrize(("make", "match"), [(False, "no version folder"), (True, "does not load")])
def test_a_server_does_not_start_without_a_model(tmp_path, make, match):
    if make:
        (tmp_path / "1").mkdir()
    with pytest.raises(UserError, match=match):
        ModelStore([ModelConfig("m", str(tmp_path))])


class TwoSignatures(tf.Module):
    """A small model of two signatures."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "x")])
    def add(self, x):
        return {"y": x + 1}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "x")])
    def look_up(self, x):
        return {"y": tf.gather(tf.constant([5, 6]), x)}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder, module = tmp_path_factory.mktemp("small"), TwoSignatures()
    signatures = {"serving_default": module.add, "b": module.look_up}
    tf.saved_model.save(module, str(folder / "3"), signatures=signatures)
    return str(folder)


@pytest.fixture(scope="module")
def small(base):
    return ModelStore([ModelConfig("m", base), ModelConfig("a", base)])


def test_the_default_signature_has_no_name_to_give(small):
    servable = small.get("m")
    assert set(servable.signature_defs) == {"serving_default", "b"}
    assert servable.signature_def("") == servable.signature_def("serving_default")
    x = np.array([1], np.int32)
    assert servable.predict("", {"x": x})["y"].tolist() == [2]
    assert servable.predict("b", {"x": x})["y"].tolist() == [6]
    assert small.names() == ["a", "m"]


@pytest.mark.parametrize(
    "signature, inputs, message",
    [
        ("c", {}, "Model 'm' has no signature 'c'. It has: b, serving_default."),
        ("", {}, "Signature 'serving_default' of model 'm' takes the inputs x; received none."),
        (
            "b",
            {"z": [1], "x": [1]},
            "Signature 'b' of model 'm' takes the inputs x; received x, z.",
        ),
        ("", {"x": ["a"]}, "Input 'x' should be int32: "),
        ("", {"x": [[1]]}, "Input 'x' should have the shape (None,); received (1, 1)."),
        ("b", {"x": [7]}, "Model 'm': indices[0] = 7 is not in [0, 2)"),
    ],
)
def test_requests_that_do_not_fit(small, signature, inputs, message):
    arrays = {name: np.array(value) for name, value in inputs.items()}
    with pytest.raises(ServingError) as error:
        small.get("m").predict(signature, arrays)
    assert error.value.code == "INVALID_ARGUMENT" and error.value.message.startswith(message)


def test_what_is_not_served(small):
    with pytest.raises(
        ServingError, match="^Model 'x' is not served here. Served: a, m.$"
    ) as error:
        small.get("x")
    assert error.value.code == "NOT_FOUND"
    with pytest.raises(ServingError, match="^Version 4 of model 'm' is not loaded; version 3 is.$"):
        small.get("m", 4)
    assert small.get("m", 3) is small.get("m")
    assert small.status("m") == small.status("m", 3) == [(3, "AVAILABLE", "OK", "")]
    with pytest.raises(ServingError, match="^Version 4 of model 'm' is not known here") as error:
        small.status("m", 4)
    assert error.value.code == "NOT_FOUND"


def test_a_version_is_loaded_once_and_tried_five_times(base, tmp_path, monkeypatch):
    shutil.copytree(f"{base}/3", tmp_path / "3")
    store, loaded = ModelStore([ModelConfig("m", str(tmp_path))]), []

    def fail(name, version, path, limits):
        loaded.append((name, version, path))
        raise ValueError("broken\n  model")

    monkeypatch.setattr(model_store, "Servable", fail)
    store.refresh()
    assert not loaded
    (tmp_path / "10").mkdir()
    for _ in range(9):
        store.refresh()
    assert loaded == [("m", 10, f"{tmp_path}/10")] * 5
    assert store.status("m", 10) == [(10, "END", "UNKNOWN", "broken model")]


def test_the_store_looks_for_versions_until_it_is_stopped(base, monkeypatch):
    store = ModelStore([ModelConfig("m", base)], poll_seconds=0.001)
    looked = threading.Event()
    monkeypatch.setattr(store, "refresh", looked.set)
    store.start()
    assert looked.wait(30)
    store.stop()
    assert not store._thread.is_alive()
    ModelStore([ModelConfig("m", base)]).stop()  # It was never started.
