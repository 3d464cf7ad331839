"""Checkpoints: copied at once, complete or not there, and damage is survived."""

import errno
import gc
import os
import shutil
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras, policy_scope
from albert_tf.training import checkpoint_files, failures
from albert_tf.training.state import TrainingState
from tests.crash_points import crash_points


def make_state(directory, width=3, dtype="float32", **settings):
    with policy_scope(keras.mixed_precision.Policy(dtype)):
        model = keras.Sequential([keras.layers.Dense(width, input_shape=(2,))])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    return model, TrainingState(str(directory), model, optimizer, keep=2, **settings), optimizer


def save_at(state, model, optimizer, step):
    optimizer.iterations.assign(step)
    model.set_weights([np.full(w.shape, float(step)) for w in model.get_weights()])
    state.save()


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_what_is_saved_is_the_moment_of_the_call(tmp_path, dtype):
    """Also where Keras casts variables, of which TensorFlow 2.15 takes no copy."""
    model, state, optimizer = make_state(tmp_path, dtype=dtype)
    for step in (1, 2, 3):
        save_at(state, model, optimizer, step)
        model.set_weights([np.full(w.shape, -1.0) for w in model.get_weights()])
    state.wait()
    other, restored, _ = make_state(tmp_path)
    assert restored.restore() and restored.step == 3
    np.testing.assert_array_equal(other.get_weights()[0], np.full([2, 3], 3.0))
    assert sorted(path.name for path in tmp_path.glob("*.index")) == [
        "step-2.index",
        "step-3.index",
    ]


def test_a_closed_state_leaves_no_thread_and_no_model(tmp_path):
    """One process may make many runs."""
    num_threads = threading.active_count()
    model, state, optimizer = make_state(tmp_path)
    save_at(state, model, optimizer, 1)
    state.close()
    assert checkpoint_files.find(str(tmp_path)) == [1]
    assert threading.active_count() == num_threads
    is_there = weakref.ref(model)
    del model, state, optimizer
    gc.collect()
    assert is_there() is None


LOSSES = {
    "lost": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "garbled": lambda file: file.write_bytes(bytes(range(256))),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_tensorflow_writes_about_checkpoints_does_not_matter(tmp_path, capfd, loss):
    """Between two starts and while a run goes on; rotation does not need it either."""
    model, state, optimizer = make_state(tmp_path)
    for step in (1, 2):
        save_at(state, model, optimizer, step)
    state.wait()
    hint = tmp_path / "checkpoint"
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "step-2")
    LOSSES[loss](hint)
    other, restored, other_optimizer = make_state(tmp_path)
    assert restored.restore() and restored.step == 2 and other.get_weights()[0][0, 0] == 2.0
    shutil.rmtree(hint, ignore_errors=True)
    save_at(restored, other, other_optimizer, 3)
    restored.wait()
    assert checkpoint_files.find(str(tmp_path)) == [2, 3]
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "step-3")
    assert "ignored" not in capfd.readouterr().err


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, flip, os.remove, LOSSES["empty"], LOSSES["garbled"]])
@pytest.mark.parametrize("file", ["index", "data-00000-of-00001"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path, capsys, file, damage):
    """It makes room for the next good one, not the other way round."""
    model, state, optimizer = make_state(tmp_path)
    for step in (5, 9):
        save_at(state, model, optimizer, step)
    state.wait()
    damage(tmp_path / f"step-9.{file}")
    other, restored, other_optimizer = make_state(tmp_path)
    assert restored.restore() and restored.step == 5
    assert other.get_weights()[0][0, 0] == 5.0
    shown = capsys.readouterr().out
    assert "step-9 is damaged" in shown and "Going back to" in shown
    save_at(restored, other, other_optimizer, 7)
    restored.wait()
    assert checkpoint_files.find(str(tmp_path)) == [5, 7]
    for step in (5, 7):
        damage(tmp_path / f"step-{step}.{file}")
    with pytest.raises(UserError, match="step-5 is damaged.*No other checkpoint.*--overwrite"):
        make_state(tmp_path)[1].restore()


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.UnavailableError(None, None, "not now"),
        tf.errors.NotFoundError(None, None, "Failed to find any matching files for a/step-9"),
        tf.errors.PermissionDeniedError(None, None, "not you"),
        tf.errors.OpError(None, None, "a/step-9.index; Input/output error", tf.errors.UNKNOWN),
    ],
)
def test_a_file_system_that_does_not_answer_is_no_damage(tmp_path, monkeypatch, error):
    """Or the next save would delete checkpoints that are whole."""
    model, state, optimizer = make_state(tmp_path)
    for step in (5, 9):
        save_at(state, model, optimizer, step)
    state.wait()

    def fail(*unused):
        raise error

    monkeypatch.setattr(tf.train.Checkpoint, "restore", fail)
    with pytest.raises(type(error)):
        make_state(tmp_path)[1].restore()


def test_killed_at_every_change_of_files(tmp_path):
    """While a written checkpoint gets its name and an old one is removed, one can be read."""
    folder, written = tmp_path / "checkpoints", tmp_path / "written"
    model, state, optimizer = make_state(folder)
    for step in (1, 2):
        save_at(state, model, optimizer, step)
    state.wait()
    shutil.copytree(folder, written)

    def prepare():
        shutil.rmtree(folder)
        (folder / "step-2_unfinished").mkdir(parents=True)
        for path in written.glob("step-*"):
            shutil.copy(path, folder / ("step-2_unfinished" if "step-2" in path.name else ""))

    steps = []
    for _ in crash_points(prepare, lambda: checkpoint_files.publish(str(folder), 2, keep=1)):
        other, restored, _ = make_state(folder)
        assert restored.restore()
        assert other.get_weights()[0][0, 0] == restored.step
        assert not list(folder.glob("*_unfinished"))
        steps.append(restored.step)
    assert steps == sorted(steps) and set(steps) == {1, 2} and len(steps) >= 6


def test_a_full_disk(tmp_path, monkeypatch):
    """What was written of the new checkpoint goes, the old one stays, and it can go on later."""
    model, state, optimizer = make_state(tmp_path)
    save_at(state, model, optimizer, 1)
    state.wait()

    def fail(*unused):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        save_at(state, model, optimizer, 2)
        with pytest.raises(OSError, match="No space left") as raised:
            state.wait()
    assert failures.explain(raised.value).exit_code == failures.STORAGE_FAILED
    assert sorted(path.name[:6] for path in tmp_path.iterdir()) == ["checkp", "step-1", "step-1"]
    assert state.latest == str(tmp_path / "step-1")
    state.save()
    state.wait()
    assert state.latest == str(tmp_path / "step-2")


def test_weights_that_are_no_numbers(tmp_path):
    model, state, _ = make_state(tmp_path)
    assert state.is_finite()
    model.set_weights([np.full(w.shape, np.inf) for w in model.get_weights()])
    assert not state.is_finite()


def test_another_optimizer_keeps_the_weights_and_the_step(tmp_path):
    model, state, optimizer = make_state(tmp_path)
    save_at(state, model, optimizer, 4)
    state.wait()
    model = keras.Sequential([keras.layers.Dense(3, input_shape=(2,))])
    adam = keras.optimizers.Adam(0.1)
    adam.build(model.trainable_variables)
    with pytest.raises(UserError, match="does not fit"):
        TrainingState(str(tmp_path), model, adam, keep=2).restore()
    restored = TrainingState(str(tmp_path), model, adam, keep=2, must_match=False)
    assert restored.restore() and restored.step == 4 and model.get_weights()[0][0, 0] == 4.0
    assert not any(np.any(variable.numpy()) for variable in adam.variables if variable.shape.rank)


def test_another_model(tmp_path):
    model, state, optimizer = make_state(tmp_path)
    save_at(state, model, optimizer, 1)
    state.wait()
    with pytest.raises(UserError, match="does not fit this model"):
        make_state(tmp_path, width=4)[1].restore()


def test_what_an_interrupted_save_left_is_removed(tmp_path):
    (tmp_path / "step-7_temp").mkdir()
    (tmp_path / "step-7_temp" / "part-00000-of-00001.data").write_bytes(b"half")
    make_state(tmp_path, is_chief=False)
    assert (tmp_path / "step-7_temp").exists()
    _, state, _ = make_state(tmp_path)
    assert not (tmp_path / "step-7_temp").exists()
    assert not state.restore()


def test_only_the_first_worker_writes(tmp_path):
    model, state, optimizer = make_state(tmp_path, is_chief=False)
    save_at(state, model, optimizer, 1)
    state.wait()
    assert not list(tmp_path.iterdir())
