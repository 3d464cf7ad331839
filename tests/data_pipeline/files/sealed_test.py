"""JSON with hashes: what was written is read, what was changed is refused by name."""

from __future__ import annotations

import json

import pytest

from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files, sealed

VALUES = {"kind": "x", "sizes": (1, 2.5), "text": "\u00fc\ud800", "none": None}


@pytest.fixture
def path(tmp_path) -> str:
    (tmp_path / "beside").write_text("words")
    hashes = sealed.hashes_of(str(tmp_path), ["beside"])
    text = json.dumps(sealed.seal(VALUES, hashes))
    (tmp_path / "about.json").write_text(text)
    return str(tmp_path / "about.json")


def test_what_was_written_is_read(path, tmp_path):
    found = sealed.read(path, "Copy it.")
    assert found.values == {**VALUES, "sizes": [1, 2.5]} and list(found.hashes) == ["beside"]
    found.check(str(tmp_path), ["beside", "unknown"], "Copy it.")
    for change in (lambda file: file.write_text("word"), lambda file: file.unlink()):
        change(tmp_path / "beside")
        with pytest.raises(UserError, match=r"beside is .*about\.json.* Copy it\."):
            found.check(str(tmp_path), ["beside"], "Copy it.")


@pytest.mark.parametrize(
    "old, new", [("2.5", "2.6"), ('"kind"', '"kinb"'), ('"sha256"', '"sha255"'), ("{", "[[[")]
)
def test_a_change_is_refused(path, tmp_path, old, new):
    text = (tmp_path / "about.json").read_text()
    (tmp_path / "about.json").write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=r"about\.json is damaged.*Copy it\."):
        sealed.read(path, "Copy it.")


@pytest.mark.parametrize("content", [b"", b"\xff", b"\0\0", b"[1]", b"[" * 200_000])
def test_what_is_no_object(path, tmp_path, content):
    (tmp_path / "about.json").write_bytes(content)
    with pytest.raises(UserError, match=r"about\.json is damaged.*Copy it\."):
        sealed.read(path, "Copy it.")
    (tmp_path / "about.json").unlink()
    (tmp_path / "about.json").mkdir()
    with pytest.raises(UserError, match=r"about\.json should be a file.*Copy it\."):
        sealed.read(path, "Copy it.")


def test_folders_of_earlier_versions_are_not_compared(path, tmp_path):
    atomic_files.write_json(path, {"kind": "x"})
    found = sealed.read(path, "Copy it.")
    assert found.values == {"kind": "x"} and not found.hashes
    found.check(str(tmp_path), ["beside", "missing"], "Copy it.")
