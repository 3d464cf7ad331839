"""One process writes to a folder at a time, and a dead one does not lock it."""

import errno
import fcntl
import os
import signal
import socket

import pytest

from data_pipeline.errors import UserError
from data_pipeline.files.lock import locked


def test_the_lock_of_a_living_process_and_of_a_dead_one(tmp_path):
    folder, (reader, writer) = str(tmp_path), os.pipe()
    child = os.fork()
    if child == 0:
        with locked(folder):
            os.write(writer, b"!")
            signal.pause()
        os._exit(1)
    try:
        assert os.read(reader, 1) == b"!"
        expected = f"in use by process {child} on {socket.gethostname()}, started .* another folder"
        with pytest.raises(UserError, match=expected), locked(folder):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with locked(folder), pytest.raises(UserError, match=f"process {os.getpid()}"), locked(folder):
        pass
    with locked(folder):
        pass


def test_a_file_system_without_locks(tmp_path, monkeypatch, capsys):
    def refuse(*unused):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(str(tmp_path)):
        shown = capsys.readouterr().out
    assert "cannot be locked (No locks available). Make sure that no other" in shown


def test_storage_without_locks():
    with locked("gs://bucket/run"):
        pass


def test_a_link_to_nothing_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    for path in ("out", "out/deeper"):
        with (
            pytest.raises(UserError, match="out is a broken link. Name a folder"),
            locked(path),
        ):
            pass
