"""Answers whose holds are settled when they have ended."""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from latchkey._hold import AsyncHoldKeeper, HoldKeeper, HoldTimes, Settlement, schedule

if sys.version_info >= (3, 11):
    from typing import TypedDict
else:
    from typing_extensions import TypedDict

Request = TypeVar("Request")


@dataclass(frozen=True, kw_only=True)
class EndedAnswer:
    """An answer that has ended."""

    complete: bool
    """Whether all of it was sent. False: the end user hung up, or the handler failed."""
    status: int
    """0 if there was none yet."""
    bytes: int
    """Bytes of the body that the handler sent, before any compression by the server."""
    chunks: int
    """How often it sent some."""
    reported: Settlement | None
    """What the handler reported last."""
    cost: int
    """The credits that were held."""


class HoldOptions(HoldTimes, TypedDict, Generic[Request], total=False):
    """The option `hold` of `verify`."""

    settle: Callable[[EndedAnswer, Request], Settlement | Awaitable[Settlement]]
    """What an answer did cost, when it has ended; only FastAPI awaits it. Default: what the handler reported, or else
    the cost that was held. It may take 30 seconds. If it fails, the cost that was held is charged, and `on_error` gets
    the reason."""


class HeldAnswer:
    """The answer to a request with a hold: counts what is sent, and ends the hold with it."""

    def __init__(
        self,
        keeper: HoldKeeper | AsyncHoldKeeper,
        method: str,
        settle: Callable[[EndedAnswer], Settlement | Awaitable[Settlement]] | None,
    ) -> None:
        self.hold = keeper.state.open
        self._method = method
        self.status = 0
        self.settling: asyncio.Task[Any] | None = None
        self._keeper = keeper
        self._settle = settle
        self._bytes = 0
        self._chunks = 0
        self._has_ended = False
        self._lock = threading.Lock()

    def end_with(self, response: object) -> None:
        """Ends the answer at the latest when its response is dropped, because another one was sent or none."""

        # The garbage collector can run in any thread, whatever lock that one holds.
        def end() -> None:
            schedule.after(0, lambda: self.end(complete=False))

        weakref.finalize(response, end).atexit = False

    def begin(self, status: int) -> bool:
        """The status is known. Returns whether a body is sent; without one, the answer has ended."""
        self.status = status
        if self._method == "HEAD" or status in (204, 304):
            self.end(complete=True)
            return False
        return True

    def sent(self, count: int) -> None:
        """A part of the body was sent."""
        if count > 0:
            self._bytes += count
            self._chunks += 1

    def end(self, *, complete: bool) -> None:
        """The answer has ended.

        Its hold is released if nothing was sent or it is an error, unless the handler reported something. Only the
        first call counts.
        """
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
        count, chunks = self._bytes, self._chunks
        state = self._keeper.state
        reported = state.reported
        is_free = reported is None and (self.status >= 400 or (not complete and count == 0))
        answer = EndedAnswer(
            complete=complete, status=self.status, bytes=count, chunks=chunks, reported=reported, cost=state.cost
        )
        decide: Any = None if is_free else lambda: self._decide(answer)
        settling = self._keeper.end_later(decide)
        if isinstance(settling, asyncio.Task):
            self.settling = settling

    def _decide(self, answer: EndedAnswer) -> Settlement | Awaitable[Settlement]:
        if self._settle is not None:
            return self._settle(answer)
        return answer.reported if answer.reported is not None else {"credits": answer.cost}


class CountedBody:
    """The body of an answer, counted while it is read. Its source is closed when the connection is."""

    def __init__(self, parts: Iterable[bytes], held: HeldAnswer, source: object) -> None:
        self._parts = iter(parts)
        self._held = held
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            part = next(self._parts)
        except StopIteration:
            self._held.end(complete=True)
            raise
        except BaseException:
            self._held.end(complete=False)
            raise
        self._held.sent(len(part))
        return part

    def close(self) -> None:
        close = getattr(self._source, "close", None)
        try:
            if close is not None:
                close()
        finally:
            self._held.end(complete=False)
