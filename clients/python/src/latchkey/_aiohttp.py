"""The HTTP client of asynchronous calls: httpx on the connections of aiohttp, for a fifth of the processor time."""

from __future__ import annotations

import aiohttp
import httpx
from httpx_aiohttp import HttpxAiohttpClient

# What a request can end with instead of an answer.
ERRORS = (httpx.RequestError, aiohttp.ClientError)


def open_client(connections_max: int) -> httpx.AsyncClient:
    """A client with as many connections."""
    return HttpxAiohttpClient(
        limits=httpx.Limits(max_connections=connections_max, max_keepalive_connections=connections_max)
    )


def error_of(error: httpx.RequestError | aiohttp.ClientError) -> httpx.RequestError:
    """The error by what happened: the transport calls a lost connection a timeout, and passes other errors on."""
    cause = error.__cause__ if isinstance(error, httpx.ConnectTimeout) else error
    if isinstance(cause, aiohttp.ClientError) and not isinstance(cause, aiohttp.ServerTimeoutError):
        return httpx.NetworkError(str(cause) or type(cause).__name__)
    return error if isinstance(error, httpx.RequestError) else httpx.ReadTimeout(str(error))
