"""Files of checkpoints: which count, in which order they get their names, which are removed."""

import os

import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.training import checkpoint_files
from data_pipeline.files import atomic_files


def touch(folder, *names: str) -> None:
    for name in names:
        (folder / name).touch()


def checkpoint(folder, step: int) -> None:
    touch(folder, f"step-{step}.index", f"step-{step}.data-00000-of-00001")


def unfinished(folder, step: int) -> None:
    """What TensorFlow writes where it is told to."""
    path = checkpoint_files.unfinished(str(folder), step)
    for ending in ("index", "data-00000-of-00002", "data-00001-of-00002"):
        with open(f"{path}.{ending}", "w") as file:
            file.write(f"{step}")


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_steps_are_told_by_names(tmp_path):
    assert checkpoint_files.find(str(tmp_path / "none")) == []
    checkpoint(tmp_path, 20)
    checkpoint(tmp_path, 3)
    touch(
        tmp_path, "step-7.data-00000-of-00001", "step-8.indexes", "step-x.index", "my-step-9.index"
    )
    touch(tmp_path, "checkpoint", "step-11.data-0-of-1")
    (tmp_path / "step-30_unfinished").mkdir()
    assert checkpoint_files.find(str(tmp_path)) == [3, 7, 20]


def test_a_run_that_went_further(tmp_path):
    run = str(tmp_path)
    checkpoint_files.check_steps(run, 1)
    (tmp_path / "checkpoints").mkdir()
    checkpoint(tmp_path / "checkpoints", 20)
    checkpoint_files.check_steps(run, 20)
    with pytest.raises(
        UserError, match=r"has already made 20 updates, more than .* 19. Ask for 20 or"
    ):
        checkpoint_files.check_steps(run, 19)


def test_a_checkpoint_is_published(tmp_path):
    unfinished(tmp_path, 5)
    assert names(tmp_path) == ["step-5_unfinished"]
    assert checkpoint_files.find(str(tmp_path)) == []
    checkpoint_files.publish(str(tmp_path), 5, keep=1)
    assert names(tmp_path) == [
        "checkpoint",
        "step-5.data-00000-of-00002",
        "step-5.data-00001-of-00002",
        "step-5.index",
    ]
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "step-5")


def test_the_index_gets_its_name_last_when_all_is_safe(tmp_path, monkeypatch):
    unfinished(tmp_path, 5)
    events = []
    rename = tf.io.gfile.rename

    def note_rename(old, new, overwrite=False):
        events.append(os.path.basename(new))
        rename(old, new, overwrite)

    monkeypatch.setattr(tf.io.gfile, "rename", note_rename)
    monkeypatch.setattr(atomic_files, "sync_tree", lambda folder: events.append("safe"))
    monkeypatch.setattr(atomic_files, "sync", lambda path: events.append("names safe"))
    checkpoint_files.publish(str(tmp_path), 5, keep=1)
    assert events[0] == "safe" and events[3:5] == ["step-5.index", "names safe"]
    assert all(event.startswith("step-5.data") for event in events[1:3])


def test_the_oldest_are_removed(tmp_path):
    """By their whole number, not by its first digits."""
    for step in (1, 2, 30, 10):
        checkpoint(tmp_path, step)
    unfinished(tmp_path, 11)
    checkpoint_files.publish(str(tmp_path), 11, keep=3)  # 30 could not be read.
    assert checkpoint_files.find(str(tmp_path)) == [2, 10, 11]
    lines = (tmp_path / "checkpoint").read_text().splitlines()
    assert lines == [
        'model_checkpoint_path: "step-11"',
        *(f'all_model_checkpoint_paths: "step-{step}"' for step in (2, 10, 11)),
    ]


def test_an_index_is_removed_first(tmp_path, monkeypatch):
    checkpoint(tmp_path, 1)
    unfinished(tmp_path, 2)
    removed, remove = [], tf.io.gfile.remove
    monkeypatch.setattr(
        tf.io.gfile, "remove", lambda path: removed.append(os.path.basename(path)) or remove(path)
    )
    checkpoint_files.publish(str(tmp_path), 2, keep=1)
    assert removed == ["step-1.index", "step-1.data-00000-of-00001"]


def test_what_interrupted_saves_left(tmp_path):
    checkpoint_files.remove_unfinished(str(tmp_path / "none"))
    checkpoint(tmp_path, 1)
    unfinished(tmp_path, 1)  # Its files have their names, its folder was not removed yet.
    unfinished(tmp_path, 2)
    touch(tmp_path, "step-2.data-00000-of-00002")  # Half of its files had their names.
    (tmp_path / "step-3_temp0abc").mkdir()
    (tmp_path / "step-4_other").mkdir()
    checkpoint_files.remove_unfinished(str(tmp_path))
    assert names(tmp_path) == ["step-1.data-00000-of-00001", "step-1.index", "step-4_other"]
