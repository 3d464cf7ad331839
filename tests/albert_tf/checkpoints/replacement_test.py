"""A model folder that is replaced is there, old or new, whenever the process is killed."""

import shutil
from pathlib import Path

import pytest

from albert_tf.checkpoints import native, replacement
from albert_tf.models import AlbertPretrainer


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def models(tiny_config, tmp_path):
    """Two model folders, `first` and `second`."""
    for step, name in enumerate(("first", "second")):
        native.save(AlbertPretrainer(tiny_config), str(tmp_path / name), {"step": step})
    return tmp_path


@pytest.mark.parametrize("can_exchange", [True, False])
def test_killed_at_every_change(models, monkeypatch, crash_points, can_exchange):
    folder = models / "best_model"
    if not can_exchange:
        monkeypatch.setattr(replacement, "_exchange", lambda one, other: False)

    def prepare():
        replacement.settle(str(folder))
        assert not list(models.glob("best_model.*"))
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(models / "first", folder)

    def replace():
        with replacement.replacing(str(folder)) as new:
            for path in (models / "second").iterdir():
                shutil.copy(path, new)

    expected = [content(models / name) for name in ("first", "second")]
    found = []
    for _ in crash_points(prepare, replace, more=[(replacement, "_exchange")]):
        assert folder.exists() or not can_exchange
        found.append(native.read_metadata(str(folder))["step"])
        assert content(Path(replacement.existing(str(folder)))) == expected[found[-1]]
    assert sorted(found) == found and {0, 1} == set(found) and len(found) > 3
    native.load_model(str(folder))


def test_an_error_leaves_the_old_folder(models):
    folder = models / "first"
    before = content(folder)
    with pytest.raises(OSError, match="no room"), replacement.replacing(str(folder)):
        raise OSError("no room")
    assert content(folder) == before and not list(models.glob("first.*"))
