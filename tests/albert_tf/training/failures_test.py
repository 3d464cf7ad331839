"""Errors that are the machine's, and what is said of them."""

import errno
import os

import pytest
import tensorflow as tf

from albert_tf.training.failures import STORAGE_FAILED, WORKER_LOST, explain


@pytest.mark.parametrize(
    ("number", "beginning"),
    [
        (errno.ENOSPC, "the disk is full: "),
        (errno.EDQUOT, "the disk is full: "),
        (errno.EIO, "a disk or a file server failed: "),
        (errno.ESTALE, "a disk or a file server failed: "),
        (errno.ETIMEDOUT, "a disk or a file server failed: "),
        (errno.ECONNRESET, "a disk or a file server failed: "),
    ],
)
def test_storage(number, beginning):
    text = os.strerror(number)
    found = explain(OSError(number, text))
    assert str(found).startswith(beginning) and found.exit_code == STORAGE_FAILED
    assert "run the same command" in str(found) and "last complete checkpoint" in str(found)
    raised = tf.errors.UnknownError(None, None, f"{{{{node a}}}} a/b; {text} [Op:SaveV2]\nsecond")
    found = explain(raised)
    assert str(found).startswith(f"{beginning}a/b; {text}. ")
    assert found.exit_code == STORAGE_FAILED


@pytest.mark.parametrize(
    "kind",
    [
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.CancelledError,
        tf.errors.DeadlineExceededError,
        tf.errors.InternalError,
    ],
)
@pytest.mark.parametrize("sign", ["Collective ops is aborted by: x", "at remote target /job:w/0"])
def test_another_worker(kind, sign):
    found = explain(kind(None, None, f"text\n{sign}"))
    assert found.exit_code == WORKER_LOST and "another worker is gone" in str(found)
    assert explain(kind(None, None, "something else")) is None


@pytest.mark.parametrize(
    "error",
    [
        ValueError(os.strerror(errno.ENOSPC)),
        OSError(errno.ENOENT, os.strerror(errno.ENOENT)),
        OSError("without a number"),
        tf.errors.UnknownError(None, None, "nothing known"),
        tf.errors.InvalidArgumentError(None, None, "Collective ops is aborted"),
        tf.errors.UnknownError(None, None, ""),
    ],
    ids=str,
)
def test_any_other_error(error):
    assert explain(error) is None
