"""The folders and files that a fine-tuning run leaves."""

import hashlib

import numpy as np
import pytest

from albert_tf.checkpoints import formats, native
from albert_tf.errors import UserError
from albert_tf.finetuning.runs import run_files
from albert_tf.finetuning.runs.run_files import Origin, read_outputs, write_outputs
from albert_tf.models import AlbertClassifier


def test_the_model_to_be_used(tiny_config, tmp_path):
    assert run_files.best_folder(str(tmp_path)) == str(tmp_path / "model")
    model = AlbertClassifier(tiny_config, 2)
    native.save(model, str(tmp_path / "last_model"), {})
    assert run_files.best_folder(str(tmp_path)) == str(tmp_path / "last_model")
    native.save(model, str(tmp_path / "model"), {})
    assert run_files.best_folder(str(tmp_path)) == str(tmp_path / "model")


def test_the_model_that_answers(tiny_config, tmp_path, capsys):
    model, run, other = AlbertClassifier(tiny_config, 2), tmp_path / "run", str(tmp_path / "other")
    own, last = str(run / "model"), str(run / "last_model")
    assert run_files.answering_folder(str(run), other) == other  # There is no run.
    for folder in (own, last):
        native.save(model, folder, {})
    assert run_files.answering_folder(str(run), None) == own
    assert run_files.answering_folder(str(run), f"{last}/") == f"{last}/"
    assert capsys.readouterr().out == ""
    assert run_files.answering_folder(str(run), other) == own
    assert f"the run only started from --init_checkpoint={other}" in capsys.readouterr().out


def test_the_hash_of_weights_in_one_file_in_several_and_in_none(tmp_path):
    source = formats.Google(str(tmp_path / "m"), None, None)
    with pytest.raises(UserError, match="m: the weights file is missing"):
        run_files.weights_sha256(source)
    hashes = []
    for part in range(2):
        content = bytes([part])
        (tmp_path / f"m.data-0000{part}-of-00002").write_bytes(content)
        hashes.append(hashlib.sha256(content).hexdigest())
        found = run_files.weights_sha256(source)
        expected = hashes[0] if part == 0 else hashlib.sha256("".join(hashes).encode()).hexdigest()
        assert found == expected


def test_what_was_kept_comes_back_with_its_origin(tmp_path):
    about = Origin("mine", ("0", "1"), "examples' hash", "model's hash")
    kept = {"logits": np.float32([[0.1, -2.5]]), "row_numbers": np.int32([0])}
    path = str(tmp_path / "outputs" / "dev.best.npz")
    write_outputs(path, kept, about)
    found, origin = read_outputs(path)
    assert origin == about and set(found) == set(kept)
    for name, values in kept.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"no archive at all"])
def test_a_damaged_file(tmp_path, content):
    path = tmp_path / "dev.best.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"dev.best.npz is damaged .*Predict with the model"):
        read_outputs(str(path))


def test_arrays_without_their_origin(tmp_path):
    np.savez(tmp_path / "dev.best.npz", logits=np.zeros(2))
    with pytest.raises(UserError, match="of another version"):
        read_outputs(str(tmp_path / "dev.best.npz"))
