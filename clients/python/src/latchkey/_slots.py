"""A bound on what happens at the same time in an event loop."""

from __future__ import annotations

import asyncio


class Slots:
    """Slots of one event loop.

    `asyncio.Semaphore` of Python 3.10 can lose a slot when what waits for it is cancelled.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: dict[asyncio.Future[None], None] = {}

    async def acquire(self, timeout: float) -> bool:
        """Waits for a slot. False: there was none in that time, in seconds."""
        if self._free > 0:
            self._free -= 1
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = None
        try:
            await asyncio.wait([turn], timeout=timeout)
        except asyncio.CancelledError:
            if turn.done():
                self.release()
            raise
        finally:
            self._waiting.pop(turn, None)
        return turn.done()

    def release(self) -> None:
        """Gives a slot back: to what waits for the longest time."""
        if not self._waiting:
            self._free += 1
            return
        turn = next(iter(self._waiting))
        del self._waiting[turn]
        turn.set_result(None)
