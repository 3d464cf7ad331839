"""Connections of HTTP: refusals in the API's own form, which also arrive.

A client that sends a whole body before it reads would not see why it is refused: closing a
connection on which bytes are unread resets it, and what was written to it is lost. So after a
refusal the rest of what the client sends is read and thrown away, up to a bound.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any

from waitress.channel import HTTPChannel
from waitress.task import ErrorTask

from export.server.errors import INVALID_ARGUMENT
from export.server.monitoring import Monitor

MAX_DISCARDED_BYTES = 512 << 20
LEAST_BYTES_A_SECOND = 1 << 16  # That a client reads while a thread waits for it.
REQUEST_SECONDS = 120  # In which a request has to be there, from its first byte on.


class JsonErrorTask(ErrorTask):
    """The answer to what is no HTTP request, or too large a one."""

    def execute(self) -> None:
        """Writes the answer; the connection closes behind it."""
        error = self.request.error
        seconds = time.time() - self.start_time
        self.channel.monitor.record("REST", "other", "", INVALID_ARGUMENT, seconds)
        self.status = f"{error.code} {error.reason}"
        body = json.dumps({"error": f"{error.reason}: {error.body}."}).encode()
        self.response_headers.append(("Content-Type", "application/json"))
        self.channel.is_refused = True
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class Connection(HTTPChannel):
    """A connection whose errors are JSON, and that throws away what comes after a refusal.

    The server's cleanup ends it when nothing has been answered for the time of an idle connection,
    whatever the client still sends.

    Args:
      arguments, named: those of the server.
      monitor: what counts requests that are refused before the application sees them.

    Attributes:
      monitor: as given.
      is_refused: whether an error has been answered.
    """

    error_task_class = JsonErrorTask
    is_refused = False
    close_when_flushed: bool
    _left: int | None = None  # Bytes that may still be thrown away; None: it is not closing yet.
    _began = 0.0  # When the first byte of the request came that is not complete yet.

    def __init__(self, *arguments: Any, monitor: Monitor, **named: Any) -> None:
        self.monitor = monitor
        super().__init__(*arguments, **named)

    def readable(self) -> bool:
        """Whether the server's thread of input and output should call `handle_read`."""
        return self._left is not None or super().readable()

    def handle_write(self) -> None:
        """Sends what is to be sent; behind a refusal no more than "this was all" follows."""
        if self.close_when_flushed and self.is_refused and not self.will_close:
            self._flush_exception(self._flush_some)
            if not self.total_outbufs_len and not self.will_close:
                self.close_when_flushed = False
                self._left = MAX_DISCARDED_BYTES
                with contextlib.suppress(OSError):  # It is closed already: reading tells.
                    self.socket.shutdown(socket.SHUT_WR)
            return
        super().handle_write()

    def _flush_outbufs_below_high_watermark(self) -> None:
        """Waits, in a thread that answers, until the client has read most of what there is for it.

        The server's own wait has no end: a client that asks again and again and reads nothing would
        keep the thread for good.
        """
        with self.outbuf_lock:
            while self.connected and self.total_outbufs_len > self.adj.outbuf_high_watermark:
                before = self.total_outbufs_len
                self.server.pull_trigger()
                if self.outbuf_lock.wait(self.adj.channel_timeout):
                    continue  # The client has read enough, or is gone.
                read = before - self.total_outbufs_len
                if read < LEAST_BYTES_A_SECOND * self.adj.channel_timeout:
                    with contextlib.suppress(OSError):  # It is closed already.
                        self.socket.shutdown(socket.SHUT_RDWR)  # The other thread closes it then.

    def handle_read(self) -> None:
        """Reads a part of a request, or throws it away; one that never ends is given up."""
        if self._left is None:
            before, seconds = self.request, time.monotonic() - self._began
            if before is not None and seconds > REQUEST_SECONDS:
                self.monitor.record("REST", "other", "", INVALID_ARGUMENT, seconds)
                self.handle_close()
                return
            super().handle_read()
            if self.request is not before:  # Another one has begun, or none is left.
                self._began = time.monotonic()
            return
        try:
            data = self.recv(self.adj.recv_bytes)  # Closes the connection where it has ended.
        except OSError:
            self.handle_close()
            return
        self._left -= len(data)
        if data and self._left < 0:
            self.handle_close()
