"""The time of one attempt, for an HTTP client that has timeouts only for its steps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import httpx

# How long after its deadline an attempt may wait for a connection, in seconds.
GRACE = 5.0
# Each is sent with a timeout of its own.
_PIECE_BYTES = 64 * 2**10
_CONNECTED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")


class Deadline(dict[str, float]):
    """The timeouts of the steps of an attempt, as the HTTP client reads them: each is what is left of the whole."""

    def __init__(self, timeout: float) -> None:
        super().__init__()
        self._end = time.monotonic() + timeout

    def get(self, name: str, default: object = None) -> float:
        # An HTTP client can lose a connection that it gives to a request whose wait ends in the same moment. At the
        # deadline, the attempts before end, and many get one: those must not give up then.
        return _Left(self) if name != "pool" else self.left + GRACE

    @property
    def left(self) -> float:
        """Seconds, at least 0."""
        return max(self._end - time.monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        return self.left == 0


class _Left(float):
    """The seconds that were left of a deadline when this was made, which are too many after it was waited for."""

    deadline: Deadline

    def __new__(cls, deadline: Deadline) -> _Left:
        left = super().__new__(cls, max(deadline.left, 0.001))
        left.deadline = deadline
        return left


def watch_streams(event: str, info: Mapping[str, Any]) -> None:
    """Makes all reads and writes of a new connection respect the deadline of their attempt, as its extension `trace`.

    httpcore asks for the timeout once for all headers, and once for the body. It waits that long for each piece of
    them, so an answer that arrives byte by byte would have no end.
    """
    stream = info.get("return_value")
    if not event.endswith(_CONNECTED) or stream is None:
        return
    read, write = stream.read, stream.write

    def read_in_time(max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = read(max_bytes, _present(timeout))
        return data

    def write_in_time(buffer: bytes, timeout: float | None = None) -> None:
        for at in range(0, len(buffer), _PIECE_BYTES):
            write(buffer[at : at + _PIECE_BYTES], _present(timeout))

    stream.read, stream.write = read_in_time, write_in_time


def _present(timeout: float | None) -> float | None:
    if not isinstance(timeout, _Left):
        return timeout
    # Data that is there is read even with the shortest timeout.
    if timeout.deadline.is_over:
        raise httpx.ReadTimeout("The time of the attempt is over.")
    return _Left(timeout.deadline)
