"""What was kept of outputs comes back from its file, and a damaged file is a sentence."""

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.stored_outputs import Origin, read_outputs, write_outputs


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
