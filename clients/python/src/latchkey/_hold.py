"""Holds: kept open while their work runs, and settled with what it did cost."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

from latchkey._background import Schedule, Threads
from latchkey._call import CallOptions, Result
from latchkey._error import LatchkeyError
from latchkey.types import (
    SettleHoldInputRatelimitsEntry,
    SettleHoldOutput,
    VerifyKeyInputHold,
    VerifyKeyOutput,
    VerifyKeyOutputHold,
)

if sys.version_info >= (3, 11):
    from typing import Required, TypedDict
else:
    from typing_extensions import Required, TypedDict

_log = logging.getLogger("latchkey")

TTL_DEFAULT = 60_000
_TTL_MIN = 1_000
_LIFETIME_DEFAULT = 3_600_000
# A hold ends at the latest 24 hours after it was made.
_LIFETIME_MAX = 86_400_000
# An extension that fails can be tried once more before the hold expires.
_EXTENSIONS_PER_TTL = 3
# With the waits between them, about half a minute.
_ATTEMPTS = 8
_WAIT_FIRST = 0.25
_WAIT_MAX = 8.0
SETTLE_TIMEOUT = 30.0

Output = TypeVar("Output")
Work = TypeVar("Work")


class Settlement(TypedDict, total=False):
    """What work did cost, as `holds.settle_hold` takes it."""

    credits: Required[int]
    ratelimits: Sequence[SettleHoldInputRatelimitsEntry]
    tags: Sequence[str]


class HoldTimes(TypedDict, total=False):
    """How long holds are kept open."""

    ttl: int
    """Milliseconds until a hold expires unless it is extended, 1,000 to 24 hours. Default: 60,000."""
    on_expiry: Literal["release", "charge"]
    """What happens to the credits if this program ends before it could settle. Default: `release`."""
    lifetime_max: int
    """The longest time in milliseconds for which a hold is extended, from `ttl` to 24 hours. Default: an hour."""


@dataclass(frozen=True, kw_only=True)
class OpenHold(VerifyKeyOutputHold):
    """A hold whose work is under way. `expires_at` is extended until the work has ended."""

    _report: Callable[[Settlement], bool] = field(repr=False, compare=False)

    def report(
        self,
        *,
        credits: int,
        ratelimits: Sequence[SettleHoldInputRatelimitsEntry] | None = None,
        tags: Sequence[str] | None = None,
    ) -> bool:
        """Says what the work did cost so far. It replaces what was reported before.

        Returns:
            Whether it counts. False: the hold has ended, because the end user hung up. Stop the work.

        Raises:
            ValueError: The credits are not an integer of at least 0.
        """
        settlement: Settlement = {"credits": credits}
        if ratelimits is not None:
            settlement["ratelimits"] = ratelimits
        if tags is not None:
            settlement["tags"] = tags
        return self._report(settlement)


class UnsettledHold(Exception):
    """A hold could not be settled or released. It expires; for a day, `holds.settle_hold` can still settle it."""

    def __init__(self, hold_id: str, settlement: Settlement | None, cause: Exception) -> None:
        end = "released" if settlement is None else f"settled with {settlement['credits']} credits"
        super().__init__(f"The hold {hold_id} could not be {end}: {cause}")
        self.hold_id = hold_id
        self.settlement = settlement
        """What was to be charged. None: it was to be released."""
        self.__cause__ = cause


@dataclass(frozen=True, kw_only=True)
class Held(Generic[Output]):
    """What `with_hold` returns. Without a valid key, the work was not done."""

    valid: bool
    verified: VerifyKeyOutput
    result: Output | None = None
    """What the work returned."""
    settled: SettleHoldOutput | None = None
    """What was charged. None if the hold could not be settled."""


def checked_times(times: HoldTimes) -> HoldTimes:
    """The times with their defaults.

    Raises:
        ValueError: A time cannot be used. The message names the option.
    """
    ttl = _milliseconds("ttl", times.get("ttl", TTL_DEFAULT), _TTL_MIN)
    longest = times.get("lifetime_max", max(ttl, _LIFETIME_DEFAULT))
    checked: HoldTimes = {"ttl": ttl, "lifetime_max": _milliseconds("lifetime_max", longest, ttl)}
    if "on_expiry" in times:
        checked["on_expiry"] = times["on_expiry"]
    return checked


def hold_input(times: HoldTimes) -> VerifyKeyInputHold:
    """The argument `hold` of `keys.verify_key`."""
    made: VerifyKeyInputHold = {"ttl": times["ttl"]}
    if "on_expiry" in times:
        made["on_expiry"] = times["on_expiry"]
    return made


def _milliseconds(name: str, value: int, minimum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= _LIFETIME_MAX:
        raise ValueError(
            f"The option `hold.{name}` must be an integer from {minimum} to {_LIFETIME_MAX}: milliseconds."
        )
    return value


def checked_settlement(settlement: object) -> Settlement:
    credits = settlement.get("credits") if isinstance(settlement, Mapping) else None
    if isinstance(credits, bool) or not isinstance(credits, int) or not 0 <= credits < 2**53:
        raise ValueError(f"What work did cost must have `credits`, an integer of at least 0. It is {credits!r}.")
    return cast(Settlement, dict(cast("Mapping[str, Any]", settlement)))


@dataclass(frozen=True)
class _Wait:
    seconds: float


@dataclass(frozen=True)
class _Call:
    operation: Literal["settle_hold", "release_hold", "extend_hold"]
    arguments: Mapping[str, Any]


# It gets the answer of each call, or the error, and returns at its end.
_Steps = Generator[_Wait | _Call, Any, Output]


class HoldState:
    """What a hold needs besides something that calls and waits."""

    def __init__(
        self, made: VerifyKeyOutputHold | None, cost: int, times: HoldTimes, on_error: Callable[[Exception], None]
    ) -> None:
        if made is None:
            raise ValueError("The service made no hold.")
        self.open = OpenHold(hold_id=made.hold_id, expires_at=made.expires_at, _report=self._report)
        self.cost = cost
        self.reported: Settlement | None = None
        self._ttl = times["ttl"]
        self._lifetime_max = times["lifetime_max"]
        self._on_error = on_error
        self._made_at = time.monotonic()
        self._has_ended = False
        self._lock = threading.Lock()
        self.is_closing = threading.Event()

    def _report(self, settlement: Settlement) -> bool:
        checked = checked_settlement(settlement)
        with self._lock:
            if not self._has_ended:
                self.reported = checked
            return not self._has_ended

    @property
    def reported_or_none(self) -> Callable[[], Settlement] | None:
        """Decides with what was reported; None if there is nothing."""
        reported = self.reported
        return None if reported is None else lambda: reported

    def reported_or_cost(self) -> Settlement:
        return {"credits": self.cost} if self.reported is None else self.reported

    def end(self) -> bool:
        """Whether this is its first end."""
        with self._lock:
            is_first = not self._has_ended
            self._has_ended = True
        return is_first

    def fail(self, error: Exception) -> None:
        """Reports an error. A hook that fails must not keep the hold from being settled."""
        try:
            self._on_error(error)
        except Exception:
            _log.exception("%s", error)

    def fallback(self, error: Exception) -> Settlement:
        self.fail(error)
        return {"credits": self.cost}

    def extension_wait(self) -> float:
        """Seconds until the next extension."""
        return self._ttl / _EXTENSIONS_PER_TTL / 1_000

    def extension(self) -> _Steps[bool]:
        """One extension. Returns whether there is another one."""
        left = int(min(self._ttl, self._lifetime_max - (time.monotonic() - self._made_at) * 1_000))
        if left < _TTL_MIN or self.is_closing.is_set():
            return False
        answer = yield _Call("extend_hold", {"hold_id": self.open.hold_id, "ttl": left})
        if not isinstance(answer, Exception):
            object.__setattr__(self.open, "expires_at", answer.expires_at)
            return True
        # It has expired otherwise. Its settlement will be a late one.
        return isinstance(answer, LatchkeyError) and _may_pass(answer.status)

    def close(self, settlement: Settlement | None) -> _Steps[SettleHoldOutput | None]:
        """Settles the hold, or releases it without a settlement. What fails for good is reported."""
        self.is_closing.set()
        hold_id = self.open.hold_id
        for attempt in itertools.count(1):
            answer = yield (
                _Call("release_hold", {"hold_id": hold_id})
                if settlement is None
                else _Call("settle_hold", {**settlement, "hold_id": hold_id})
            )
            if not isinstance(answer, Exception):
                return cast(SettleHoldOutput, answer)
            status, wait = (answer.status, answer.retry_after) if isinstance(answer, LatchkeyError) else (0, None)
            # It has expired, which may have charged it.
            if settlement is None and status == 409:
                return (yield from self.close({"credits": 0}))
            if status in (400, 412) and settlement is not None and len(settlement) > 1:
                self.fail(answer)
                return (yield from self.close({"credits": settlement["credits"]}))
            if attempt == _ATTEMPTS or not _may_pass(status):
                self.fail(UnsettledHold(hold_id, settlement, answer))
                return None
            backoff = _WAIT_FIRST * 2 ** (attempt - 1) * random.uniform(0.5, 1)
            yield _Wait(min(max(backoff, wait or 0), _WAIT_MAX))
        return None


def _may_pass(status: int | None) -> bool:
    """Whether the same call may succeed later. None: there was no answer."""
    return status is None or status == 429 or status >= 500


_ONCE: CallOptions = {"retries": 0}
_threads = Threads("latchkey-holds")
# Settlements that are tried again keep their threads. Open holds must not expire meanwhile.
_extending_threads = Threads("latchkey-extensions")
schedule = Schedule("latchkey-schedule")


class HoldKeeper:
    """Keeps a hold open, and ends it, with threads."""

    def __init__(self, holds: Any, state: HoldState) -> None:
        self.state = state
        self._holds = holds
        self._extend_later()

    def end(self, decide: Callable[[], Settlement] | None) -> SettleHoldOutput | None:
        """Settles the hold with what `decide` returns, or releases it. One that has ended stays as it is."""
        if not self.state.end():
            return None
        try:
            return self._run(self.state.close(None if decide is None else self._decided(decide)))
        finally:
            self._extension.cancel()

    def end_later(self, decide: Callable[[], Settlement] | None) -> None:
        """The same in the background."""
        _threads.submit(self.end, decide)

    def _decided(self, decide: Callable[[], Settlement]) -> Settlement:
        decided: list[Settlement | Exception] = []

        def run() -> None:
            try:
                decided.append(checked_settlement(decide()))
            except Exception as error:
                decided.append(error)

        # A function that never returns must not keep a thread of the executor.
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(SETTLE_TIMEOUT)
        found = decided[0] if decided else _too_late()
        return self.state.fallback(found) if isinstance(found, Exception) else found

    def _extend_later(self) -> None:
        self._extension = schedule.after(self.state.extension_wait(), lambda: _extending_threads.submit(self._extend))
        # It may have ended before this one could be cancelled.
        if self.state.is_closing.is_set():
            self._extension.cancel()

    def _extend(self) -> None:
        if self._run(self.state.extension()):
            self._extend_later()

    def _run(self, steps: _Steps[Output]) -> Output:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return cast(Output, end.value)
            if isinstance(step, _Wait):
                time.sleep(step.seconds)
                continue
            try:
                answer = getattr(self._holds, step.operation)(**step.arguments, options=_ONCE).data
            except Exception as error:
                answer = error


class AsyncHoldKeeper:
    """Keeps a hold open, and ends it, with tasks of the event loop."""

    # The event loop has weak references only.
    _tasks: ClassVar[set[asyncio.Task[Any]]] = set()

    def __init__(self, holds: Any, state: HoldState) -> None:
        self.state = state
        self._holds = holds
        self._extending = self._start(self._extend())

    async def end(self, decide: Callable[[], Settlement | Awaitable[Settlement]] | None) -> SettleHoldOutput | None:
        """Settles the hold with what `decide` returns, or releases it. One that has ended stays as it is."""
        if not self.state.end():
            return None
        settlement = None if decide is None else await self._decided(decide)
        self._extending.cancel()
        return await self._run(self.state.close(settlement))

    def end_later(
        self, decide: Callable[[], Settlement | Awaitable[Settlement]] | None
    ) -> asyncio.Task[SettleHoldOutput | None]:
        """The same in the background."""
        return self._start(self.end(decide))

    @classmethod
    def _start(cls, coroutine: Coroutine[Any, Any, Output]) -> asyncio.Task[Output]:
        task = asyncio.get_running_loop().create_task(coroutine)
        cls._tasks.add(task)
        task.add_done_callback(cls._tasks.discard)
        return task

    @classmethod
    async def verified(cls, verifying: Coroutine[Any, Any, Output], in_vain: Callable[[Output], object]) -> Output:
        """What a verification returns. If this is cancelled, it goes on and can make a hold: `in_vain` gets it then."""
        task = cls._start(verifying)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(
                lambda done: None if done.cancelled() or done.exception() else in_vain(done.result())
            )
            raise

    async def _decided(self, decide: Callable[[], Settlement | Awaitable[Settlement]]) -> Settlement:
        try:
            found = decide()
            if isawaitable(found):
                found = await asyncio.wait_for(found, SETTLE_TIMEOUT)
            return checked_settlement(found)
        except (TimeoutError, asyncio.TimeoutError):
            return self.state.fallback(_too_late())
        except Exception as error:
            return self.state.fallback(error)

    async def _extend(self) -> None:
        is_open = True
        while is_open:
            await asyncio.sleep(self.state.extension_wait())
            is_open = await self._run(self.state.extension())

    async def _run(self, steps: _Steps[Output]) -> Output:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return cast(Output, end.value)
            if isinstance(step, _Wait):
                await asyncio.sleep(step.seconds)
                continue
            try:
                result: Result[Any] = await getattr(self._holds, step.operation)(**step.arguments, options=_ONCE)
                answer = result.data
            except Exception as error:
                answer = error


def _too_late() -> Exception:
    return ValueError(f"The function in the option `settle` took more than {SETTLE_TIMEOUT:g} s.")


def log_error(error: Exception) -> None:
    """The default of `on_error`."""
    _log.error("%s", error)
