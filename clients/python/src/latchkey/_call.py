"""What all operations share: requests, answers, timeouts, retries, pages."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import re
import threading
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypedDict, TypeVar, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx

from latchkey import _aiohttp
from latchkey._breaker import Breaker, Outcome
from latchkey._deadline import GRACE, Deadline, watch_streams
from latchkey._error import InputError, LatchkeyError
from latchkey._json import UnexpectedShape, decode, encode
from latchkey._secret import Secret
from latchkey._slots import Slots
from latchkey._version import VERSION

TIMEOUT_DEFAULT = 2.0
TIMEOUT_MAX = 86_400
RETRIES_DEFAULT = 2
RETRIES_MAX = 10
RETRY_WAIT_MAX_DEFAULT = 5.0
_WAIT_FIRST = 0.1
# As many as an HTTP client has connections. More would wait for one, and time out.
_CALLS_MAX = 100
# How long a call waits for those before it, in time-outs.
_TIMEOUTS_WAITED = 5
_ANSWER_BYTES_MAX = 16 * 2**20
_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")

Data = TypeVar("Data")
DataOut = TypeVar("DataOut", covariant=True)


class CallOptions(TypedDict, total=False):
    """What one call uses instead of the options of the client."""

    timeout: float
    """Seconds that one attempt may take, with its answer."""
    retries: int
    """Further attempts after a failed one, 0 to 10."""
    retry_charges: bool
    """Whether a call that charges limits or credits carries an `Idempotency-Key`, so that it is retried."""
    idempotency_key: str
    """The `Idempotency-Key` of the call, 1 to 255 visible ASCII characters. Omitted: a random one if useful."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt of a call."""

    operation: str
    attempt: int
    """1, 2, …"""
    headers: httpx.Headers
    """Without the root key. Headers that are set here are sent."""


@dataclass(frozen=True, kw_only=True)
class AttemptEnd:
    """How an attempt ended."""

    operation: str
    attempt: int
    duration: float
    """Seconds."""
    status: int | None
    """None without an answer."""
    request_id: str | None
    error: LatchkeyError | None
    """None if it succeeded."""
    retry_in: float | None
    """Seconds until the next attempt; None if there is none."""


@dataclass(frozen=True, kw_only=True)
class RateLimit:
    """The limit of requests per minute of the workspace."""

    limit: int
    remaining: int
    reset: int
    """Seconds until the minute ends."""


@dataclass(frozen=True, kw_only=True)
class Result(Generic[DataOut]):
    """The answer to a call that succeeded."""

    data: DataOut
    request_id: str
    """Identifies the call in the log of the service."""
    rate_limit: RateLimit | None = None
    """Present if the workspace has a limit of requests."""


@dataclass(frozen=True, kw_only=True)
class Pagination:
    """The position in a list."""

    has_more: bool
    """Whether there is another page."""
    cursor: str | None = None
    """Send it as `cursor` to get the next page. Present if there is one."""


@dataclass(frozen=True, kw_only=True)
class Page(Result[DataOut]):
    """One page of a list."""

    pagination: Pagination


@dataclass(frozen=True)
class Operation(Generic[Data]):
    """What the client must know of an operation."""

    name: str
    data: type[Data]
    repeatable: Literal["always", "idempotent", "charge"] | None = None
    """Whether a call can be repeated: always, or with an Idempotency-Key; `charge`: only on request. None: never."""
    list_name: str | None = None
    """Name of the list inside `data`. None: `data` is the list."""
    is_paged: bool = False


@dataclass(frozen=True)
class Settings:
    """The checked options of a client."""

    url: str
    root_key: Secret | None
    timeout: float
    retries: int
    retry_charges: bool
    retry_wait_max: float
    circuit_breaker: bool
    on_request: Callable[[Attempt], None] | None
    on_response: Callable[[AttemptEnd], None] | None


def settings_of(
    url: str | None,
    root_key: str | Secret | None,
    *,
    timeout: float,
    retries: int,
    retry_charges: bool,
    retry_wait_max: float,
    circuit_breaker: bool,
    on_request: Callable[[Attempt], None] | None,
    on_response: Callable[[AttemptEnd], None] | None,
) -> Settings:
    """Checks the options of a client, and reads omitted ones from the environment.

    Raises:
        ValueError: An option cannot be used. The message names it.
    """
    given = root_key.reveal() if isinstance(root_key, Secret) else root_key
    key = given.strip() if given is not None else _environment("LATCHKEY_ROOT_KEY")
    # The HTTP client would name the value in its error.
    if key is not None and not _VISIBLE_ASCII.fullmatch(key):
        raise ValueError("The option `root_key` (LATCHKEY_ROOT_KEY) must be a root key: visible ASCII characters only.")
    return Settings(
        url=_address(url if url is not None else _environment("LATCHKEY_URL")),
        root_key=Secret(key) if key is not None else None,
        timeout=_seconds("timeout", timeout, 0.001),
        retries=_retries(retries),
        retry_charges=retry_charges,
        retry_wait_max=_seconds("retry_wait_max", retry_wait_max, 0),
        circuit_breaker=circuit_breaker,
        on_request=on_request,
        on_response=on_response,
    )


def _environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def _address(text: str | None) -> str:
    if text is None:
        raise ValueError("The address of the service is missing: give the option `url`, or set LATCHKEY_URL.")
    try:
        # The HTTP client would accept a host that is no host.
        url = httpx.URL(text if urlsplit(text).hostname else "")
    except (ValueError, httpx.InvalidURL):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise ValueError("The option `url` (LATCHKEY_URL) must be an address such as https://keys.example.com.")
    return str(url).rstrip("/")


def _seconds(name: str, value: float, minimum: float) -> float:
    if isinstance(value, bool) or not math.isfinite(value) or not minimum <= value <= TIMEOUT_MAX:
        raise ValueError(f"The option `{name}` must be a number of seconds from {minimum} to {TIMEOUT_MAX}.")
    return value


def _retries(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= RETRIES_MAX:
        raise ValueError(f"The option `retries` must be an integer from 0 to {RETRIES_MAX}.")
    return value


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: httpx.Headers
    body: bytes | None
    """None if it is longer than 16 MiB."""


class _Call(Generic[Data]):
    """One call: decides after each attempt whether there is another one."""

    def __init__(
        self,
        settings: Settings,
        breaker: Breaker,
        operation: Operation[Data],
        input: object,
        options: CallOptions | None,
    ) -> None:
        own = options or {}
        unknown = own.keys() - CallOptions.__annotations__.keys()
        if unknown:
            raise ValueError(f"There is no option `{min(unknown)}` of a call.")
        self.url = f"{settings.url}/v2/{operation.name}"
        self.timeout = _seconds("timeout", own.get("timeout", settings.timeout), 0.001)
        self.body = encode(input)
        self.headers = httpx.Headers()
        self.deadline = Deadline(self.timeout)
        self.result: Result[Data] | None = None
        self._settings = settings
        self._breaker = breaker
        self._operation = operation
        self._retries = _retries(own.get("retries", settings.retries))
        retry_charges = own.get("retry_charges", settings.retry_charges)
        repeatable = operation.repeatable
        self._idempotency_key = own.get("idempotency_key")
        if self._idempotency_key is not None and not re.fullmatch(r"[\x21-\x7e]{1,255}", self._idempotency_key):
            raise ValueError("The option `idempotency_key` must be 1 to 255 visible ASCII characters.")
        is_useful = repeatable == "idempotent" or (repeatable == "charge" and retry_charges)
        if self._idempotency_key is None and self._retries > 0 and is_useful:
            self._idempotency_key = str(uuid.uuid4())
        self._is_repeatable = repeatable == "always" or (repeatable is not None and self._idempotency_key is not None)
        self._attempt = 0
        self._started_at = 0.0
        self._error: LatchkeyError | None = None

    def start_attempt(self) -> None:
        """Sets the headers and the deadline of the next attempt."""
        self._attempt += 1
        headers = httpx.Headers({"Accept": "application/json", "User-Agent": f"latchkey-python/{VERSION}"})
        if self._idempotency_key is not None:
            headers["Idempotency-Key"] = self._idempotency_key
        if self._settings.on_request is not None:
            name = self._operation.name
            self._settings.on_request(Attempt(operation=name, attempt=self._attempt, headers=headers))
        headers["Content-Type"] = "application/json"
        headers["Accept-Encoding"] = "identity"
        if self._settings.root_key is not None:
            headers["Authorization"] = f"Bearer {self._settings.root_key.reveal()}"
        self.headers = headers
        self._started_at = time.monotonic()
        self.deadline = Deadline(self.timeout)

    def end_attempt(self, ended: _Answer | Exception) -> float | None:
        """The seconds until the next attempt; None if the call has succeeded.

        Raises:
            LatchkeyError: The call has failed.
        """
        duration = time.monotonic() - self._started_at
        read = self._failure(ended) if isinstance(ended, Exception) else self._read(ended)
        error = read if isinstance(read, LatchkeyError) else None
        retry_in = self._retry_wait(error) if error is not None else None
        if self._settings.on_response is not None:
            end = AttemptEnd(
                operation=self._operation.name,
                attempt=self._attempt,
                duration=duration,
                status=200 if error is None else error.status,
                request_id=read.request_id,
                error=error,
                retry_in=retry_in,
            )
            self._settings.on_response(end)
        if not isinstance(read, LatchkeyError):
            self.result = read
        elif retry_in is None:
            raise read from (ended if isinstance(ended, Exception) else None)
        self._error = error
        return retry_in

    def not_admitted(self) -> LatchkeyError:
        """Why the call failed whose next attempt the circuit breaker does not let pass."""
        detail = (
            "The call was not sent, because the service left several in a row without an answer. Try again shortly."
        )
        return self._not_sent("circuit_open", detail)

    @property
    def longest_wait(self) -> float:
        """Seconds that an attempt may wait for others."""
        return self.timeout * _TIMEOUTS_WAITED

    def without_slot(self) -> LatchkeyError:
        """Why the call failed whose next attempt waited for too long behind others."""
        detail = f"The call was not sent: {_CALLS_MAX} others were under way for {self.longest_wait:g} s."
        return self._not_sent("timeout", detail)

    def _not_sent(self, type: Literal["circuit_open", "timeout"], detail: str) -> LatchkeyError:
        # An earlier attempt may have been executed. Its error says so.
        return self._error or LatchkeyError(type=type, operation=self._operation.name, detail=detail)

    def _failure(self, cause: Exception) -> LatchkeyError:
        if isinstance(cause, (httpx.TimeoutException, TimeoutError)):
            detail = f"The service did not answer within {self.timeout:g} s."
            return LatchkeyError(type="timeout", operation=self._operation.name, detail=detail)
        address = self.url.removesuffix(f"/v2/{self._operation.name}")
        reason = cause or type(cause).__name__
        detail = f"The service at {address} cannot be reached: {reason}. Is it running, and is that its address?"
        return LatchkeyError(type="network_error", operation=self._operation.name, detail=detail)

    def _read(self, answer: _Answer) -> Result[Data] | LatchkeyError:
        """The answer, or the error that it describes. Its shape is checked: the address can be of another service."""
        name = self._operation.name
        status, headers = answer.status, answer.headers
        seconds = headers.get("Retry-After", "")
        retry_after = float(seconds) if re.fullmatch(r"[0-9]{1,6}", seconds) else None
        content = _parsed(answer.body)
        meta, error = _mapping(content.get("meta")), _mapping(content.get("error"))
        request_id = meta.get("requestId") if isinstance(meta.get("requestId"), str) else None
        detail = f"The answer has status {status} and is not one of Latchkey. Is it the right address?"
        if status == 200 and "data" in content and request_id is not None:
            try:
                return self._result(content, request_id, _rate_limit(headers))
            except UnexpectedShape as problem:
                detail = f"The answer is not one of this operation: data{problem}. Is the service too old or too new?"
        elif isinstance(error.get("type"), str) and isinstance(error.get("detail"), str):
            return LatchkeyError(
                type=cast(Any, re.sub(r"^.*/errors/", "", error["type"], flags=re.DOTALL)),
                operation=name,
                detail=error["detail"],
                status=status,
                errors=_input_errors(error.get("errors")),
                retry_after=retry_after,
                request_id=request_id,
            )
        elif answer.body is None:
            detail = "The answer is longer than 16 MiB."
        elif 300 <= status < 400:
            detail = "The address redirects to another one. Redirects are not followed: use that address."
        return LatchkeyError(
            type="invalid_answer", operation=name, detail=detail, status=status, retry_after=retry_after
        )

    def _result(self, content: Mapping[str, Any], request_id: str, rate_limit: RateLimit | None) -> Result[Data]:
        data: Data = decode(self._operation.data, content["data"])
        if not self._operation.is_paged:
            return Result(data=data, request_id=request_id, rate_limit=rate_limit)
        try:
            pagination: Pagination = decode(Pagination, content.get("pagination"))
        except UnexpectedShape as problem:
            raise UnexpectedShape(f" has no page: pagination{problem}") from None
        return Page(data=data, request_id=request_id, rate_limit=rate_limit, pagination=pagination)

    def _retry_wait(self, error: LatchkeyError) -> float | None:
        if self._attempt > self._retries or self._breaker.is_open:
            return None
        is_safe = (
            # A call over a limit of requests had no effect.
            error.status == 429
            or (
                self._is_repeatable
                and (
                    error.type in ("network_error", "timeout")
                    or error.status in (502, 503, 504)
                    # An attempt without an answer is still being executed.
                    or (self._attempt > 1 and error.type == "application/idempotency_in_progress")
                )
            )
        )
        retry_after = error.retry_after or 0
        if not is_safe or retry_after > self._settings.retry_wait_max:
            return None
        longest = min(_WAIT_FIRST * 2.0 ** (self._attempt - 1), self._settings.retry_wait_max)
        return longest * (0.5 + random.random() / 2) + retry_after


def _outcome_of(ended: _Answer | Exception | None) -> Outcome:
    if isinstance(ended, _Answer):
        return "answered"
    # Without a connection of the pool, nothing was sent.
    is_timeout = isinstance(ended, httpx.TimeoutException) and not isinstance(ended, httpx.PoolTimeout)
    return "timeout" if is_timeout else "unknown"


def _is_compressed(response: httpx.Response) -> bool:
    """Whether an answer is compressed, which no request accepts: a short one could become long in memory."""
    return bool(response.headers.get("Content-Encoding", "identity").lower() != "identity")


def _parsed(body: bytes | None) -> Mapping[str, Any]:
    try:
        return _mapping(json.loads(body or b""))
    except (ValueError, RecursionError):
        return {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _input_errors(values: object) -> list[InputError]:
    try:
        return cast("list[InputError]", decode(list[InputError], values if values is not None else []))
    except UnexpectedShape:
        return []


def _rate_limit(headers: httpx.Headers) -> RateLimit | None:
    values = [headers.get(f"RateLimit-{name}", "") for name in ("Limit", "Remaining", "Reset")]
    if not all(re.fullmatch(r"[0-9]{1,15}", value) for value in values):
        return None
    limit, remaining, reset = map(int, values)
    return RateLimit(limit=limit, remaining=remaining, reset=reset)


def _next_input(operation: Operation[Any], input: Mapping[str, Any], page: Page[Any], sent: object) -> dict[str, Any]:
    cursor = page.pagination.cursor
    # Otherwise the same page would be returned for ever.
    if cursor is None or cursor == sent:
        detail = "The list has no next page, but more entries."
        raise LatchkeyError(type="invalid_answer", operation=operation.name, detail=detail)
    return {**input, "cursor": cursor}


def _entries(operation: Operation[Any], page: Page[Any]) -> list[Any]:
    found: list[Any] = page.data if operation.list_name is None else getattr(page.data, operation.list_name)
    return found


class Caller:
    """Calls the service, and waits for its answers."""

    def __init__(self, settings: Settings, http_client: httpx.Client) -> None:
        self._settings = settings
        self._http = http_client
        self._breaker = Breaker(settings.circuit_breaker)
        self._slots = threading.Semaphore(_CALLS_MAX)

    def call(self, operation: Operation[Data], input: object, options: CallOptions | None) -> Result[Data]:
        call = _Call(self._settings, self._breaker, operation, input, options)
        while True:
            retry_in = call.end_attempt(self._attempt(call))
            if call.result is not None:
                return call.result
            time.sleep(retry_in or 0)

    def _attempt(self, call: _Call[Any]) -> _Answer | Exception:
        if not self._breaker.allows():
            raise call.not_admitted()
        if not self._slots.acquire(timeout=call.longest_wait):
            raise call.without_slot()
        try:
            permit = self._breaker.admit()
            if permit is None:
                raise call.not_admitted()
            ended: _Answer | Exception | None = None
            try:
                call.start_attempt()
                ended = self._send(call)
            except httpx.RequestError as error:
                ended = error
            finally:
                self._breaker.end(permit, _outcome_of(ended))
            return ended
        finally:
            self._slots.release()

    def page(self, operation: Operation[Data], input: object, options: CallOptions | None) -> Page[Data]:
        return cast("Page[Data]", self.call(operation, input, options))

    def all(self, operation: Operation[Any], input: Mapping[str, Any], options: CallOptions | None) -> Iterator[Any]:
        current = input
        while True:
            page = self.page(operation, current, options)
            yield from _entries(operation, page)
            if not page.pagination.has_more:
                return
            current = _next_input(operation, input, page, current["cursor"])

    def _send(self, call: _Call[Any]) -> _Answer:
        extensions = {"timeout": call.deadline, "trace": watch_streams}
        request = self._http.build_request(
            "POST", call.url, content=call.body, headers=call.headers, extensions=extensions
        )
        # A redirect could lead the root key to another host.
        response = self._http.send(request, stream=True, auth=None, follow_redirects=False)
        try:
            body = bytearray()
            if _is_compressed(response):
                return _Answer(response.status_code, response.headers, b"")
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _ANSWER_BYTES_MAX:
                    return _Answer(response.status_code, response.headers, None)
                if call.deadline.is_over:
                    raise httpx.ReadTimeout("The time of the attempt is over.")
            return _Answer(response.status_code, response.headers, bytes(body))
        finally:
            response.close()


@dataclass(frozen=True, eq=False)
class _Loop:
    """What an event loop has of its own: connections belong to the loop that opened them."""

    http: httpx.AsyncClient
    closing: AsyncGenerator[None]
    """Closes the connections when it is closed. An event loop that ends closes the generators that it has started."""
    slots: Slots = field(default_factory=lambda: Slots(_CALLS_MAX))
    attempts: set[asyncio.Task[_Answer | Exception]] = field(default_factory=set)


class AsyncCaller:
    """Calls the service without blocking the event loop."""

    def __init__(self, settings: Settings, http_client: httpx.AsyncClient | None) -> None:
        self._settings = settings
        self._http = http_client
        self._breaker = Breaker(settings.circuit_breaker)
        # Frameworks can run several.
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()

    async def close(self) -> None:
        """Closes the connections of this event loop, unless the HTTP client was given."""
        if self._http is None and (own := self._loops.get(asyncio.get_running_loop())) is not None:
            await own.closing.aclose()

    async def _open(self) -> _Loop:
        """Opens what the running event loop has of its own."""
        http = self._http or _aiohttp.open_client(_CALLS_MAX)
        own = _Loop(http, self._closing(http))
        if self._http is None:
            await own.closing.__anext__()
        self._loops[asyncio.get_running_loop()] = own
        return own

    async def _closing(self, http: httpx.AsyncClient) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            own = self._loops.pop(asyncio.get_running_loop(), None)
            if own is not None and (attempts := list(own.attempts)):
                for each in attempts:
                    each.cancel()
                await asyncio.wait(attempts)
            await http.aclose()

    async def call(self, operation: Operation[Data], input: object, options: CallOptions | None) -> Result[Data]:
        call = _Call(self._settings, self._breaker, operation, input, options)
        while True:
            retry_in = call.end_attempt(await self._attempt(call))
            if call.result is not None:
                return call.result
            await asyncio.sleep(retry_in or 0)

    async def _attempt(self, call: _Call[Any]) -> _Answer | Exception:
        """One attempt, in a task of its own.

        The HTTP client can lose a connection of its pool for good when it is cancelled. So neither a cancelled call nor
        the end of its time reaches into it: its own timeouts end the attempt.
        """
        running = asyncio.get_running_loop()
        loop = self._loops.get(running) or await self._open()
        if not self._breaker.allows():
            raise call.not_admitted()
        if not await loop.slots.acquire(call.longest_wait):
            raise call.without_slot()
        permit = self._breaker.admit()
        if permit is None:
            loop.slots.release()
            raise call.not_admitted()
        try:
            call.start_attempt()
            request = loop.http.build_request(
                "POST", call.url, content=call.body, headers=call.headers, extensions={"timeout": call.deadline}
            )
        except BaseException:
            self._breaker.end(permit, "unknown")
            loop.slots.release()
            raise
        attempt = running.create_task(self._send(loop.http, request, call.deadline))
        is_late = False

        def end(_: object) -> None:
            loop.attempts.discard(attempt)
            loop.slots.release()
            has_failed = attempt.cancelled() or attempt.exception() is not None
            outcome = "unknown" if has_failed else _outcome_of(attempt.result())
            if not is_late or outcome == "answered":
                self._breaker.end(permit, outcome)

        loop.attempts.add(attempt)
        attempt.add_done_callback(end)
        try:
            await asyncio.wait([attempt], timeout=call.timeout)
        finally:
            if not attempt.done():
                # For an HTTP client of the caller that has no timeouts, and for answers that arrive byte by byte.
                running.call_later(call.deadline.left + 2 * GRACE, attempt.cancel)
        if not attempt.done():
            is_late = True
            self._breaker.end(permit, "timeout")
            return TimeoutError()
        return httpx.ReadError("The client was closed") if attempt.cancelled() else attempt.result()

    async def page(self, operation: Operation[Data], input: object, options: CallOptions | None) -> Page[Data]:
        return cast("Page[Data]", await self.call(operation, input, options))

    async def all(
        self, operation: Operation[Any], input: Mapping[str, Any], options: CallOptions | None
    ) -> AsyncIterator[Any]:
        current = input
        while True:
            page = await self.page(operation, current, options)
            for entry in _entries(operation, page):
                yield entry
            if not page.pagination.has_more:
                return
            current = _next_input(operation, input, page, current["cursor"])

    async def _send(
        self, http: httpx.AsyncClient, request: httpx.Request, deadline: Deadline
    ) -> _Answer | httpx.RequestError:
        try:
            # A redirect could lead the root key to another host.
            response = await http.send(request, stream=True, auth=None, follow_redirects=False)
            try:
                body = bytearray()
                if _is_compressed(response):
                    return _Answer(response.status_code, response.headers, b"")
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _ANSWER_BYTES_MAX:
                        return _Answer(response.status_code, response.headers, None)
                    if deadline.is_over:
                        return httpx.ReadTimeout("The time of the attempt is over.")
                return _Answer(response.status_code, response.headers, bytes(body))
            finally:
                await response.aclose()
        except _aiohttp.ERRORS as error:
            return _aiohttp.error_of(error)
