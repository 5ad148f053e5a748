"""The clients."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar

import httpx

from latchkey._call import (
    RETRIES_DEFAULT,
    RETRY_WAIT_MAX_DEFAULT,
    TIMEOUT_DEFAULT,
    AsyncCaller,
    Attempt,
    AttemptEnd,
    Caller,
    Result,
    settings_of,
)
from latchkey._hold import (
    AsyncHoldKeeper,
    Held,
    HoldKeeper,
    HoldState,
    HoldTimes,
    OpenHold,
    Settlement,
    checked_times,
    hold_input,
    log_error,
)
from latchkey._operations import AsyncOperations, Operations
from latchkey._secret import Secret
from latchkey.types import VerifyKeyOutput

Output = TypeVar("Output")


class Latchkey(Operations):
    """A client of a Latchkey service. Threads can share one.

    Args:
        url: The address of the service, such as `https://keys.example.com`. Omitted: `LATCHKEY_URL`.
        root_key: The root key. Omitted: `LATCHKEY_ROOT_KEY`. Without one, only keys can be verified.
        timeout: Seconds that one attempt may take, with its answer.
        retries: Further attempts after a failed one, 0 to 10.
        retry_charges: Whether calls that charge limits or credits carry an `Idempotency-Key`, so that they are retried.
        retry_wait_max: The longest `Retry-After` that a call waits for, in seconds. Longer: it fails at once.
        circuit_breaker: Whether calls fail at once, with `circuit_open`, after 5 attempts in a row that timed out. One
            attempt per second is then sent as a probe, and any answer lets all calls pass again.
        on_request: Called before each attempt. Headers that it sets are sent.
        on_response: Called after each attempt.
        http_client: What sends the requests. Its own timeouts, authentication and redirects are not used, and it is not
            closed with this client.

    Raises:
        ValueError: An option cannot be used.
    """

    def __init__(
        self,
        url: str | None = None,
        root_key: str | Secret | None = None,
        *,
        timeout: float = TIMEOUT_DEFAULT,
        retries: int = RETRIES_DEFAULT,
        retry_charges: bool = False,
        retry_wait_max: float = RETRY_WAIT_MAX_DEFAULT,
        circuit_breaker: bool = True,
        on_request: Callable[[Attempt], None] | None = None,
        on_response: Callable[[AttemptEnd], None] | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        settings = settings_of(
            url,
            root_key,
            timeout=timeout,
            retries=retries,
            retry_charges=retry_charges,
            retry_wait_max=retry_wait_max,
            circuit_breaker=circuit_breaker,
            on_request=on_request,
            on_response=on_response,
        )
        self._is_own_http_client = http_client is None
        self._http_client = httpx.Client() if http_client is None else http_client
        super().__init__(Caller(settings, self._http_client))

    def with_hold(
        self,
        work: Callable[[OpenHold], Output],
        *,
        key: str | Secret,
        hold: HoldTimes | None = None,
        settle: Callable[[Output], Settlement] | None = None,
        on_error: Callable[[Exception], None] = log_error,
        **input: Any,
    ) -> Held[Output]:
        """Verifies a key with a hold, does work, and settles the hold with what the work did cost.

        That is what `settle` returns, or else what the work reported, or else the cost that was held. The hold is
        extended while the work lasts. If the work raises, what it reported is charged, and the hold is released if it
        reported nothing. A settlement that fails is tried again with the same amounts for about half a minute.

        Args:
            work: Gets the hold, to report what it did cost so far.
            key: The key string from the request of your user.
            hold: How long the hold is kept open.
            settle: What the work did cost, by its result.
            on_error: Called if the hold cannot be settled, or `settle` fails. Default: writes it to the log `latchkey`.
            input: Other arguments of `keys.verify_key`, such as `credits={"cost": 1200}`.

        Raises:
            ValueError: A time cannot be used.
            LatchkeyError: As `keys.verify_key`. The work was not done.
        """
        times = checked_times(hold or {})
        verified = self.keys.verify_key(key=key, hold=hold_input(times), **input).data
        if not verified.valid:
            return Held(valid=False, verified=verified)
        state = HoldState(verified.hold, input.get("credits", {}).get("cost", 1), times, on_error)
        keeper = HoldKeeper(self.holds, state)
        try:
            result = work(state.open)
        except BaseException:
            keeper.end(state.reported_or_none)
            raise
        settled = keeper.end(state.reported_or_cost if settle is None else lambda: settle(result))
        return Held(valid=True, verified=verified, result=result, settled=settled)

    def close(self) -> None:
        """Closes the connections to the service."""
        if self._is_own_http_client:
            self._http_client.close()

    def __enter__(self) -> Latchkey:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncLatchkey(AsyncOperations):
    """A client of a Latchkey service for `asyncio`. Each event loop has connections of its own.

    Its arguments are those of `Latchkey`. A cancelled call ends at once, and the service may have executed it: its
    request goes on in the background until it is answered or its time is over.
    """

    def __init__(
        self,
        url: str | None = None,
        root_key: str | Secret | None = None,
        *,
        timeout: float = TIMEOUT_DEFAULT,
        retries: int = RETRIES_DEFAULT,
        retry_charges: bool = False,
        retry_wait_max: float = RETRY_WAIT_MAX_DEFAULT,
        circuit_breaker: bool = True,
        on_request: Callable[[Attempt], None] | None = None,
        on_response: Callable[[AttemptEnd], None] | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        settings = settings_of(
            url,
            root_key,
            timeout=timeout,
            retries=retries,
            retry_charges=retry_charges,
            retry_wait_max=retry_wait_max,
            circuit_breaker=circuit_breaker,
            on_request=on_request,
            on_response=on_response,
        )
        self._caller = AsyncCaller(settings, http_client)
        super().__init__(self._caller)

    async def with_hold(
        self,
        work: Callable[[OpenHold], Awaitable[Output]],
        *,
        key: str | Secret,
        hold: HoldTimes | None = None,
        settle: Callable[[Output], Settlement | Awaitable[Settlement]] | None = None,
        on_error: Callable[[Exception], None] = log_error,
        **input: Any,
    ) -> Held[Output]:
        """Does work with a hold. Its arguments are those of `Latchkey.with_hold`; `settle` may return an awaitable."""
        times = checked_times(hold or {})

        def keeper_of(verified: VerifyKeyOutput) -> AsyncHoldKeeper:
            state = HoldState(verified.hold, input.get("credits", {}).get("cost", 1), times, on_error)
            return AsyncHoldKeeper(self.holds, state)

        def release(result: Result[VerifyKeyOutput]) -> None:
            if result.data.hold is not None:
                keeper_of(result.data).end_later(None)

        verifying = self.keys.verify_key(key=key, hold=hold_input(times), **input)
        verified = (await AsyncHoldKeeper.verified(verifying, release)).data
        if not verified.valid:
            return Held(valid=False, verified=verified)
        keeper = keeper_of(verified)
        state = keeper.state
        try:
            result = await work(state.open)
        except BaseException:
            await asyncio.shield(keeper.end_later(state.reported_or_none))
            raise
        # Work that is done is charged, even if nobody waits for it any more.
        settling = keeper.end_later(state.reported_or_cost if settle is None else lambda: settle(result))
        settled = await asyncio.shield(settling)
        return Held(valid=True, verified=verified, result=result, settled=settled)

    async def close(self) -> None:
        """Closes the connections that this event loop opened."""
        await self._caller.close()

    async def __aenter__(self) -> AsyncLatchkey:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
