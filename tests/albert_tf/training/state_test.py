"""Checkpoints: copied at once, complete or not there, and damage is survived."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.training.state import TrainingState


def make_state(directory, width=3, **settings):
    model = keras.Sequential([keras.layers.Dense(width, input_shape=(2,))])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    return model, TrainingState(str(directory), model, optimizer, keep=2, **settings), optimizer


def save_at(state, model, optimizer, step):
    optimizer.iterations.assign(step)
    model.set_weights([np.full(w.shape, float(step)) for w in model.get_weights()])
    state.save()


def test_what_is_saved_is_the_moment_of_the_call(tmp_path):
    model, state, optimizer = make_state(tmp_path)
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


def test_a_damaged_checkpoint_is_passed_over(tmp_path, capsys):
    model, state, optimizer = make_state(tmp_path)
    for step in (1, 2):
        save_at(state, model, optimizer, step)
    state.wait()
    (tmp_path / "step-2.data-00000-of-00001").write_bytes(b"")
    other, restored, _ = make_state(tmp_path)
    assert restored.restore() and restored.step == 1
    assert other.get_weights()[0][0, 0] == 1.0
    shown = capsys.readouterr().out
    assert "step-2 is damaged" in shown and "Going back to" in shown
    (tmp_path / "step-1.data-00000-of-00001").write_bytes(b"")
    with pytest.raises(UserError, match="step-1 is damaged.*No other checkpoint is left"):
        make_state(tmp_path)[1].restore()


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
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
