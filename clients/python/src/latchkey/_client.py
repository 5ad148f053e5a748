"""The clients."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import httpx

from latchkey._call import (
    RETRIES_DEFAULT,
    RETRY_WAIT_MAX_DEFAULT,
    TIMEOUT_DEFAULT,
    AsyncCaller,
    Attempt,
    AttemptEnd,
    Caller,
    settings_of,
)
from latchkey._operations import AsyncOperations, Operations
from latchkey._secret import Secret


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

    async def close(self) -> None:
        """Closes the connections that this event loop opened."""
        await self._caller.close()

    async def __aenter__(self) -> AsyncLatchkey:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
