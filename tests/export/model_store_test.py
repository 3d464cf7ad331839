"""Finding, loading and swapping versions."""

import os
import shutil

import pytest

from data_pipeline.errors import UserError
from export.model_store import ModelStore, ServingError, reason


def test_picks_up_a_new_version_and_survives_a_broken_one(exports, tmp_path):
    base = tmp_path / "m"
    shutil.copytree(exports.paths["preprocessor"], base / "1")
    store = ModelStore({"m": str(base)})
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
        ModelStore({"m": str(tmp_path)})


def test_the_reason_is_found_in_a_graph_error():
    message = "Graph execution error:\n\nDetected at node a\nindices[0] = 9 is not in [0, 5)"
    message += "\n\t [[{{node a}}]] [Op:__inference_f_1]"
    assert reason(message) == "indices[0] = 9 is not in [0, 5)"
    assert reason("plain") == "plain"
