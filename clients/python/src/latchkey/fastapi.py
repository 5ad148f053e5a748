"""Dependencies for FastAPI that verify keys and limit requests.

app = FastAPI()

@app.get("/documents")
async def documents(key: Annotated[VerifiedKey, Depends(Verify(api_id="api_123"))]): ...
"""

import sys
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.openapi.models import APIKey, APIKeyIn, HTTPBase, HTTPBearer
from fastapi.security.base import SecurityBase
from starlette.requests import HTTPConnection

from latchkey._client import AsyncLatchkey
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

__all__ = ["Ratelimit", "Rejected", "Rejection", "VerifiedKey", "Verify", "answer_rejected"]


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
        await _decide(self._decider, self._client, connection, response)
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
) -> None:
    decision = await decider.decide_async(client, connection)
    if isinstance(decision, Rejection):
        raise Rejected(decision)
    for name, value in decision.headers.items():
        response.headers[name] = joined(response.headers.get(name), value)


def _security(verifier: Verifier[HTTPConnection]) -> HTTPBase | APIKey:
    """What the OpenAPI document of the application says about keys."""
    if verifier.finds_key:
        return HTTPBase(scheme="ApiKey")
    if verifier.header.lower() == "authorization":
        return HTTPBearer()
    return APIKey.model_validate({"in": APIKeyIn.header, "name": verifier.header})
