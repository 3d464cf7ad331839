"""What vocabulary files are called, and how they are found."""

from __future__ import annotations

import pytest

from albert_tf.checkpoints import vocabulary
from albert_tf.errors import UserError


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("a/30k-clean.model", "spiece.model"),
        ("spiece.model", "spiece.model"),
        ("vocab_chinese.txt", "vocab.txt"),
        ("a.txt/pieces", "spiece.model"),
    ],
)
def test_the_ending_tells_the_kind(given, stored):
    assert vocabulary.stored_name(given) == stored


def test_a_vocabulary_is_found_by_name(tmp_path):
    folder = str(tmp_path)
    assert vocabulary.find(folder) is None
    for name in ("vocab.txt", "spiece.model", "own.model"):  # From the last choice to the first.
        (tmp_path / name).touch()
        assert vocabulary.find(folder, "absent", "own.model") == str(tmp_path / name)
    assert vocabulary.find(folder) == str(tmp_path / "spiece.model")


def test_a_tenth_of_the_embeddings_may_be_unused():
    for num_pieces in (90, 100):
        vocabulary.check_size("a.model", num_pieces, 100)
    for num_pieces in (89, 101):
        with pytest.raises(UserError, match=f"a.model has {num_pieces} pieces, and .* is 100. Use"):
            vocabulary.check_size("a.model", num_pieces, 100)
