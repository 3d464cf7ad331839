"""Paths with [ ] * and ?, which TensorFlow treats as a pattern when it reads a checkpoint."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator

from albert_tf.errors import UserError
from data_pipeline.files import storage

# For "a*/step-4", TensorFlow finds every name that matches; "a[1]/step-4" it looks for in a folder
# "a1". These characters cannot be escaped, so a local folder is read through a link.
_PATTERN = re.compile(r"[\[\]*?]")


def check(path: str, what: str) -> None:
    """Raises UserError if TensorFlow would treat an output path as a pattern. `what` begins the
    message with the thing to be written: "An export".
    """
    if found := _PATTERN.search(path):
        raise UserError(
            f"{path} contains {found[0]!r}. {what} cannot be read there: TensorFlow treats [ ] * "
            "and ? in a path as a pattern. Choose a path without them."
        )


def check_remote(path: str) -> None:
    """`check` for a checkpoint on gs:// and the like, where there are no links."""
    if storage.is_remote(path):
        check(path, "A checkpoint")


@contextlib.contextmanager
def literal(path: str) -> Iterator[str]:
    """A context with a path to the same checkpoint or SavedModel without pattern characters.

    runs/a[1]/step-4 -> /tmp/albert_tf_xyz/linked, next to links to the files of that checkpoint.
    A path without [ ] * and ? is returned unchanged; one with them on gs:// raises UserError.
    """
    check_remote(path)
    if not _PATTERN.search(path):
        yield path
        return
    # TMPDIR itself may contain pattern characters.
    is_usual = not _PATTERN.search(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(
        prefix="albert_tf_", dir=None if is_usual else "/tmp"
    ) as temporary:
        link = os.path.join(temporary, "linked")
        # Absolute, because a link's target is resolved relative to the link's own folder.
        folder, name = os.path.split(os.path.abspath(path))
        if os.path.isdir(path):
            os.symlink(os.path.join(folder, name), link)
        else:
            for file in os.listdir(folder) if os.path.isdir(folder) else ():
                if file.startswith(f"{name}."):
                    os.symlink(os.path.join(folder, file), link + file[len(name) :])
        yield link
