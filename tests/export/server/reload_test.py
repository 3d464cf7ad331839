"""Versions that come, break, are repaired and go, while clients ask."""

import os
import shutil
import threading

from tests.export.server.clients import PREDICT, call
from tests.export.server.conftest import save_tiny, store_of


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


def test_a_failure_is_forgotten_with_its_folder(tiny, tmp_path):
    shutil.copytree(tiny / "1", tmp_path / "1")
    store = store_of(tmp_path)
    (tmp_path / "2").mkdir()
    for _ in range(7):
        store.refresh()
    (tmp_path / "2").rmdir()
    store.refresh()
    assert [row[:2] for row in store.status("m")] == [(1, "AVAILABLE")]


def test_versions_and_labels(tiny):
    store = store_of(tiny, latest=0, labels={"stable": 1})
    assert store.get("m").version == 2 and store.get("m", label="stable").version == 1
    assert [row[0] for row in store.status("m")] == [2, 1]
    assert store_of(tiny, specific=(1,)).get("m").version == 1


def test_under_load_every_request_is_answered(running):
    """New, broken and deleted versions; three threads ask all the while."""
    stop, answers = threading.Event(), []

    def ask():
        status, answer = call(running, PREDICT, {"instances": ["abc"]})
        answers.append((status, answer))
        return answer["predictions"][0]["version"]

    def client():
        while not stop.is_set():
            ask()

    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    served = [ask()]
    try:
        versions = running.folder
        save_tiny(versions.parent / "tmp", 3)
        os.rename(versions.parent / "tmp", versions / "3")
        running.store.refresh()
        served.append(ask())
        (versions / "4").mkdir()
        running.store.refresh()
        served.append(ask())
        shutil.rmtree(versions / "4")
        shutil.rmtree(versions / "3")
        running.store.refresh()
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
