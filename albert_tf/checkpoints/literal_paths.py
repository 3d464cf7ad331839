"""Paths with [ ] * and ?, which TensorFlow takes for a pattern where it reads a checkpoint."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator

from albert_tf.errors import UserError
from data_pipeline.files import storage

# TensorFlow finds "a*/step-4" and every name that fits, and looks for "a[1]/step-4" in a folder
# "a1". There is no way to escape these characters, so a local folder is read through a link.
_PATTERN = re.compile(r"[\[\]*?]")


def check(path: str, what: str) -> None:
    """Raises UserError for a path to write to that TensorFlow takes for a pattern; `what` is to be
    written there, as the beginning of a sentence: "An export".
    """
    if found := _PATTERN.search(path):
        raise UserError(
            f"{path} holds {found[0]!r}. {what} cannot be read there: TensorFlow takes [ ] * and ? "
            "in its path for a pattern. Name a path without them."
        )


def check_remote(path: str) -> None:
    """`check` for a checkpoint on gs:// and the like, where there are no links."""
    if storage.is_remote(path):
        check(path, "A checkpoint")


@contextlib.contextmanager
def literal(path: str) -> Iterator[str]:
    """A context with a path of the same checkpoint or SavedModel that holds no pattern.

    runs/a[1]/step-4 -> /tmp/albert_tf_xyz/linked, next to links to the files of that checkpoint.
    A path without [ ] * and ? stays as it is; one with them on gs:// is a UserError.
    """
    check_remote(path)
    if not _PATTERN.search(path):
        yield path
        return
    # TMPDIR may hold a pattern itself.
    is_usual = not _PATTERN.search(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(
        prefix="albert_tf_", dir=None if is_usual else "/tmp"
    ) as temporary:
        link = os.path.join(temporary, "linked")
        # Absolute, since the target of a link is relative to the folder that the link is in.
        folder, name = os.path.split(os.path.abspath(path))
        if os.path.isdir(path):
            os.symlink(os.path.join(folder, name), link)
        else:
            for file in os.listdir(folder) if os.path.isdir(folder) else ():
                if file.startswith(f"{name}."):
                    os.symlink(os.path.join(folder, file), link + file[len(name) :])
        yield link
