"""Which runs may go on in a folder."""

import json

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.training import run_folder

FIXED = {"seed": 1, "train_batch_size": 8}


def prepare(config, folder, overwrite=False, **changes):
    run_folder.prepare(str(folder), config, {"flag": "value"}, {**FIXED, **changes}, overwrite)


def test_what_was_run_is_recorded(tiny_config, tmp_path):
    prepare(tiny_config, tmp_path / "run")
    config, fixed = run_folder.read(str(tmp_path / "run"))
    assert config == tiny_config and fixed == FIXED
    assert json.loads((tmp_path / "run" / "flags.json").read_text()) == {"flag": "value"}
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


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(UserError, match="holds no run"):
        run_folder.read(str(tmp_path))
