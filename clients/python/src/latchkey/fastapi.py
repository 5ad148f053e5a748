"""Dependencies for FastAPI that verify keys and limit requests.

app = FastAPI()

@app.get("/documents")
async def documents(key: Annotated[VerifiedKey, Depends(Verify(api_id="api_123"))]): ...
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.openapi.models import APIKey, APIKeyIn, HTTPBase, HTTPBearer
from fastapi.security.base import SecurityBase
from starlette.requests import HTTPConnection

from latchkey._client import AsyncLatchkey
from latchkey._held_answer import HeldAnswer
from latchkey._hold import AsyncHoldKeeper
from latchkey._middleware import (
    Decider,
    Limiter,
    RatelimitOptions,
    RequestReader,
    VerifiedKey,
    Verifier,
    VerifyOptions,
    joined,
)
from latchkey._rejection import Rejection

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

__all__ = ["HoldMiddleware", "Ratelimit", "Rejected", "Rejection", "VerifiedKey", "Verify", "answer_rejected"]


_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


# They would send a body that the middleware does not see.
_UNSEEN = ("http.response.pathsend", "http.response.zerocopysend")


class HoldMiddleware:
    """Sees when the answers to requests with a hold have ended. `Verify` with the option `hold` needs it.

    It also adds the headers with the limits to answers that are a `Response` of their handler.

    app.add_middleware(HoldMiddleware)
    """

    def __init__(self, app: Callable[[Any, _Receive, _Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(receive, send)
        scope["latchkey.answer"] = answer
        extensions = scope.get("extensions") or {}
        scope["extensions"] = {name: each for name, each in extensions.items() if name not in _UNSEEN}
        try:
            await self._app(scope, answer.receive, answer.send)
        finally:
            await answer.close()


class _Answer:
    """The answer to one request."""

    def __init__(self, receive: _Receive, send: _Send) -> None:
        self._receive = receive
        self._send = send
        self._reading = asyncio.Lock()
        self._received: asyncio.Queue[_Message] = asyncio.Queue(1)
        self._listening: asyncio.Task[None] | None = None
        self._held: list[HeldAnswer] = []
        self._headers: list[Mapping[str, str]] = []
        self.has_hung_up = False
        self._is_final = False

    def listen(self) -> None:
        """Notices from now on that the end user hangs up. Otherwise nobody does while the handler works."""
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    def hold(self, held: HeldAnswer) -> None:
        self._held.append(held)
        if self.has_hung_up:
            held.end(complete=False)

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Headers for the answer, if it comes without them."""
        self._headers.append(headers)

    async def receive(self) -> _Message:
        if self._listening is None:
            async with self._reading:
                return self._seen(await self._receive())
        if self.has_hung_up and self._received.empty():
            return {"type": "http.disconnect"}
        return await self._received.get()

    async def send(self, message: _Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": _with_headers(message.get("headers", ()), self._headers)}
            for held in self._held:
                held.begin(message["status"])
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        self._is_final = not message.get("more_body", False)
        for held in self._held:
            held.sent(len(message.get("body", b"")))
        await self._send(message)
        if self._is_final:
            self._end(complete=True)

    async def close(self) -> None:
        """The application has returned. A server that stops waits for it, and so for the settlement."""
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
        self._end(complete=self._is_final)
        settling = [held.settling for held in self._held if held.settling is not None]
        await asyncio.shield(asyncio.gather(*settling))

    def _end(self, *, complete: bool) -> None:
        for held in self._held:
            held.end(complete=complete)

    async def _listen(self) -> None:
        """Reads one message in advance, and after the last one that the end user hangs up."""
        while not self.has_hung_up:
            async with self._reading:
                message = self._seen(await self._receive())
            await self._received.put(message)

    def _seen(self, message: _Message) -> _Message:
        if message["type"] == "http.disconnect":
            self.has_hung_up = True
            self._end(complete=self._is_final)
        return message


def _with_headers(
    sent: Iterable[tuple[bytes, bytes]], prepared: Iterable[Mapping[str, str]]
) -> list[tuple[bytes, bytes]]:
    """The headers of an answer with those that it has not. The outer dependency is the first."""
    headers = list(sent)
    for name, value in [item for each in reversed(list(prepared)) for item in each.items()]:
        field = name.lower().encode("latin-1")
        found = [own.decode("latin-1") for other, own in headers if other.lower() == field]
        if f", {value}, " not in f", {', '.join(found)}, ":
            headers = [item for item in headers if item[0].lower() != field]
            headers.append((field, joined(value, *found).encode("latin-1")))
    return headers


class Rejected(HTTPException):
    """A request was rejected. FastAPI answers with its status and headers, and `{"detail": …}`."""

    def __init__(self, rejection: Rejection) -> None:
        # The answer of FastAPI has a content type of its own.
        headers = {name: value for name, value in rejection.headers.items() if name != "Content-Type"}
        super().__init__(rejection.status, rejection.detail, headers)
        self.rejection = rejection


async def answer_rejected(_request: Request, error: Exception) -> Response:
    """An exception handler that answers as the service does.

    app.add_exception_handler(Rejected, answer_rejected)
    """
    if not isinstance(error, Rejected):
        raise error
    rejection = error.rejection
    return Response(rejection.body, rejection.status, dict(rejection.headers))


def _route(connection: HTTPConnection) -> str | None:
    return getattr(connection.scope.get("route"), "path", None)


def _address(connection: HTTPConnection) -> str | None:
    return None if connection.client is None else connection.client.host


def _set_key(connection: HTTPConnection, key: VerifiedKey | None) -> None:
    connection.state.latchkey = key


def _get_key(connection: HTTPConnection) -> VerifiedKey | None:
    key: VerifiedKey | None = connection.state.latchkey
    return key


_reader: RequestReader[HTTPConnection] = RequestReader(
    method=lambda connection: connection.scope.get("method", "GET"),
    values=lambda connection, header: connection.headers.getlist(header),
    route=_route,
    address=_address,
    get_key=_get_key,
    set_key=_set_key,
)


class Verify(SecurityBase):
    """A dependency that verifies the key of each request, and is the verified key.

    It is None only with `fail_open`, while the service is unreachable. It is also `request.state.latchkey`.

    Args:
        latchkey: What calls the service. Omitted: `AsyncLatchkey(retry_wait_max=0)`, with the environment.

    Raises:
        ValueError: An option cannot be used.
    """

    def __init__(
        self, *, latchkey: AsyncLatchkey | None = None, **options: Unpack[VerifyOptions[HTTPConnection]]
    ) -> None:
        self._decider = Verifier(options, _reader)
        self._client = latchkey or AsyncLatchkey(retry_wait_max=0)
        self.model = _security(self._decider)
        self.scheme_name = "ApiKey"

    async def __call__(self, connection: HTTPConnection, response: Response) -> VerifiedKey | None:
        answer: Any = connection.scope.get("latchkey.answer")
        if self._decider.holds and answer is None:
            raise RuntimeError("The option `hold` needs `app.add_middleware(HoldMiddleware)` of `latchkey.fastapi`.")
        deciding = _decide(self._decider, self._client, connection, response)
        if self._decider.holds:
            answer.listen()
            held = await AsyncHoldKeeper.verified(deciding, _decided_in_vain)
        else:
            held = await deciding
        if held is not None:
            answer.hold(held)
            if answer.has_hung_up:
                # Nobody gets it.
                raise HTTPException(499)
        return _get_key(connection)


class Ratelimit:
    """A dependency that limits requests.

    Args:
        latchkey: What calls the service. Omitted: `AsyncLatchkey(retry_wait_max=0)`, with the environment.

    Raises:
        ValueError: An option cannot be used.
    """

    def __init__(
        self, *, latchkey: AsyncLatchkey | None = None, **options: Unpack[RatelimitOptions[HTTPConnection]]
    ) -> None:
        self._decider = Limiter(options, _reader)
        self._client = latchkey or AsyncLatchkey(retry_wait_max=0)

    async def __call__(self, connection: HTTPConnection, response: Response) -> None:
        await _decide(self._decider, self._client, connection, response)


async def _decide(
    decider: Decider[HTTPConnection, Any], client: AsyncLatchkey, connection: HTTPConnection, response: Response
) -> HeldAnswer | None:
    decision = await decider.decide_async(client, connection)
    if isinstance(decision, Rejection):
        raise Rejected(decision)
    for name, value in decision.headers.items():
        response.headers[name] = joined(response.headers.get(name), value)
    answer: _Answer | None = connection.scope.get("latchkey.answer")
    if answer is not None:
        answer.add_headers(decision.headers)
    return decision.held


def _decided_in_vain(held: HeldAnswer | None) -> None:
    """The request was cancelled while its key was verified."""
    if held is not None:
        held.end(complete=False)


def _security(verifier: Verifier[HTTPConnection]) -> HTTPBase | APIKey:
    """What the OpenAPI document of the application says about keys."""
    if verifier.finds_key:
        return HTTPBase(scheme="ApiKey")
    if verifier.header.lower() == "authorization":
        return HTTPBearer()
    return APIKey.model_validate({"in": APIKeyIn.header, "name": verifier.header})
