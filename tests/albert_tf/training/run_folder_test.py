"""Which runs may go on in a folder."""

import json
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.training import run_folder

FIXED = {"seed": 1, "train_batch_size": 8}


def prepare(config, folder, overwrite=False, **changes):
    run_folder.claim(str(folder), config, {"flag": "value"}, {**FIXED, **changes}, overwrite)


def test_what_was_run_is_recorded(tiny_config, tmp_path):
    prepare(tiny_config, tmp_path / "run")
    config, fixed = run_folder.read(str(tmp_path / "run"))
    assert config == tiny_config and fixed == FIXED
    assert json.loads((tmp_path / "run" / "flags.json").read_text())["flag"] == "value"
    environment = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert {"python", "tensorflow", "platform"} <= set(environment)
    if "git_revision" in environment:  # Not in an installation without git.
        assert len(environment["git_revision"].removesuffix("-dirty")) == 40


def test_only_the_same_run_goes_on(tiny_config, tmp_path):
    prepare(tiny_config, tmp_path)
    prepare(tiny_config, tmp_path)
    prepare(tiny_config.replace(recompute=True), tmp_path)  # The same results, with less memory.
    assert run_folder.read(str(tmp_path))[0].recompute
    with pytest.raises(UserError, match="train_batch_size was 8 and is 16.*--init_checkpoint"):
        prepare(tiny_config, tmp_path, train_batch_size=16)
    with pytest.raises(UserError, match="another configuration"):
        prepare(tiny_config.replace(vocab_size=60), tmp_path)
    prepare(tiny_config, tmp_path, overwrite=True, train_batch_size=16)
    assert run_folder.read(str(tmp_path))[1]["train_batch_size"] == 16


def test_numbers_of_numpy_are_numbers(tiny_config, tmp_path):
    prepare(tiny_config, tmp_path, train_batch_size=np.int64(8))
    prepare(tiny_config, tmp_path)
    assert run_folder.read(str(tmp_path))[1] == FIXED
    with pytest.raises(TypeError, match="cannot be written"):
        prepare(tiny_config, tmp_path / "other", data=object())
    assert not (tmp_path / "other").exists()


def test_examples_have_a_fingerprint():
    arrays = {"ids": np.arange(6, dtype=np.int32).reshape(2, 3), "labels": np.zeros(2, np.int32)}
    first = run_folder.fingerprint(arrays)
    assert first == run_folder.fingerprint(dict(reversed(arrays.items()))) and len(first) == 64
    assert first != run_folder.fingerprint({**arrays, "ids": arrays["ids"][::-1]})
    assert first != run_folder.fingerprint({**arrays, "ids": arrays["ids"].reshape(3, 2)})


def test_what_an_older_run_did_not_record_is_not_compared(tiny_config, tmp_path):
    prepare(tiny_config, tmp_path)
    prepare(tiny_config, tmp_path, examples="a")
    with pytest.raises(UserError, match="examples was 'a' and is 'b'"):
        prepare(tiny_config, tmp_path, examples="b")
    with pytest.raises(UserError, match="teacher was None and is 'abc'"):
        prepare(tiny_config, tmp_path, teacher="abc")
    with pytest.raises(UserError, match="segments was 'fixed' and is 'dynamic'"):
        prepare(tiny_config, tmp_path, segments="dynamic")


def test_folders_that_cannot_be_used(tiny_config, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file is a file. Name a folder"):
        prepare(tiny_config, tmp_path / "file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "photo.png").touch()
    for overwrite in (False, True):
        with pytest.raises(UserError, match="other is not empty and holds no run"):
            prepare(tiny_config, tmp_path / "other", overwrite)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["photo.png"]


def test_a_run_is_deleted_when_asked(tiny_config, tmp_path):
    prepare(tiny_config, tmp_path)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-3.index").touch()
    (tmp_path / "notes.txt").touch()
    prepare(tiny_config.replace(vocab_size=60), tmp_path, overwrite=True)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["albert_config.json", "environment.json", "flags.json", "run.json", "starts"]
    assert run_folder.read(str(tmp_path))[0].vocab_size == 60
    assert len(list((tmp_path / "starts").iterdir())) == 1


def test_a_deleted_run_is_one_to_the_last(tmp_path, tiny_config, monkeypatch):
    """Or what is left after an interruption would be files that are no run."""
    prepare(tiny_config, tmp_path)
    removed, remove = [], tf.io.gfile.remove

    def note(path):
        removed.append(path.rsplit("/", 1)[1])
        remove(path)

    monkeypatch.setattr(tf.io.gfile, "remove", note)
    prepare(tiny_config, tmp_path, overwrite=True)
    assert removed[-1] == "run.json" and "run.lock" not in removed and len(removed) == 4


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ((0, "abc-dirty\n"), "abc-dirty"),
        ((128, ""), None),
        (FileNotFoundError("git"), None),
        (subprocess.TimeoutExpired("git", 10), None),
    ],
    ids=str,
)
def test_the_revision_of_the_source(monkeypatch, result, expected):
    def run(command, cwd, **settings):
        assert command[0] == "git" and run_folder.__file__.startswith(cwd)
        assert settings["timeout"] == 10
        if isinstance(result, Exception):
            raise result
        return subprocess.CompletedProcess(command, *result)

    monkeypatch.setattr(run_folder.subprocess, "run", run)
    assert run_folder._git_revision() == expected
