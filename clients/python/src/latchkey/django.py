"""Middleware and decorators for Django that verify keys and limit requests.

    @verify(api_id="api_123")
    def documents(request): ...

For all views, in the settings:

    MIDDLEWARE = [..., "latchkey.django.LatchkeyMiddleware"]
    LATCHKEY = {"verify": {"api_id": "api_123"}}
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from inspect import isawaitable
from typing import Any, TypeVar, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from latchkey._background import Threads
from latchkey._client import Latchkey
from latchkey._held_answer import CountedBody, HeldAnswer
from latchkey._middleware import (
    Decider,
    Decision,
    Limiter,
    Passed,
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

__all__ = ["LatchkeyMiddleware", "Rejection", "VerifiedKey", "ratelimit", "verify"]

View = TypeVar("View", bound=Callable[..., Any])

# Django can run each async view in an event loop of its own, so calls are made in threads, which share connections.
_threads = Threads("latchkey")


def _route(request: HttpRequest) -> str | None:
    match = request.resolver_match
    return None if match is None else f"/{match.route}"


def _values(request: HttpRequest, header: str) -> list[str]:
    value = request.headers.get(header)
    return [] if value is None else [value]


_reader: RequestReader[HttpRequest] = RequestReader(
    method=lambda request: request.method or "",
    values=_values,
    route=_route,
    address=lambda request: request.META.get("REMOTE_ADDR"),
    get_key=lambda request: cast(Any, request).latchkey,
    set_key=lambda request, key: setattr(request, "latchkey", key),
)


class _Guard:
    """Decides about requests, in this thread or in one of a pool."""

    def __init__(self, decider: Decider[HttpRequest, Any], client: Latchkey) -> None:
        self.decide = functools.partial(decider.decide, client)

    async def decide_async(self, request: HttpRequest) -> Decision:
        deciding = _threads.submit(copy_context().run, self.decide, request)
        try:
            return await asyncio.wrap_future(deciding)
        except asyncio.CancelledError:
            # The end user has hung up. The thread goes on, and can make a hold.
            deciding.add_done_callback(_decided_in_vain)
            raise

    def __call__(self, view: View) -> View:
        """The view behind the guard."""
        if iscoroutinefunction(view):

            @functools.wraps(view)
            async def guarded_async(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
                decision = await self.decide_async(request)
                if isinstance(decision, Rejection):
                    return _answer(decision)
                return await _awaited(view(request, *args, **kwargs), decision)

            return cast(View, guarded_async)

        @functools.wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase | Awaitable[HttpResponseBase]:
            # `method_decorator` passes a partial of `dispatch`, which is sync even if the handlers of its class are
            # async. Its result is awaited then.
            is_async = getattr(getattr(getattr(view, "func", view), "__self__", None), "view_is_async", False)
            decision = self.decide(request)
            if isinstance(decision, Rejection):
                return _awaitable(_answer(decision)) if is_async else _answer(decision)
            try:
                response = view(request, *args, **kwargs)
            except BaseException:
                _failed(decision)
                raise
            return _awaited(response, decision) if isawaitable(response) else _with_headers(response, decision)

        return cast(View, guarded)


def verify(
    *, latchkey: Latchkey | None = None, **options: Unpack[VerifyOptions[HttpRequest]]
) -> Callable[[View], View]:
    """A decorator of sync and async views that verifies the key of each request. Views find it in `request.latchkey`.

    It is None only with `fail_open`, while the service is unreachable. For a class-based view, use
    `method_decorator(verify(…), name="dispatch")`.

    Args:
        latchkey: What calls the service. Omitted: `Latchkey(retry_wait_max=0)`, with the environment.

    Raises:
        ValueError: An option cannot be used.
    """
    return _Guard(Verifier(options, _reader), latchkey or Latchkey(retry_wait_max=0))


def ratelimit(
    *, latchkey: Latchkey | None = None, **options: Unpack[RatelimitOptions[HttpRequest]]
) -> Callable[[View], View]:
    """A decorator of sync and async views that limits requests.

    Args:
        latchkey: What calls the service. Omitted: `Latchkey(retry_wait_max=0)`, with the environment.

    Raises:
        ValueError: An option cannot be used.
    """
    return _Guard(Limiter(options, _reader), latchkey or Latchkey(retry_wait_max=0))


class LatchkeyMiddleware:
    """Verifies and limits the requests of all views, by the setting `LATCHKEY`.

    Its members are `verify` and `ratelimit`, the options of the functions of the same name; at least one of them.

    Raises:
        ImproperlyConfigured: The setting is missing.
        ValueError: An option cannot be used.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response
        self._guards = _configured()
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)
        self.process_view: Callable[..., Any] = self._view_async if self._is_async else self._view

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self._is_async:
            return self._call_async(request)
        try:
            response = self._get_response(request)
        except BaseException:
            _failed(*_passed(request))
            raise
        return self._finished(request, response)

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        try:
            response = await self._get_response(request)
        except BaseException:
            _failed(*_passed(request))
            raise
        return self._finished(request, response)

    # The route of a request is known when its view is.
    def _view(self, request: HttpRequest, *_: object) -> HttpResponse | None:
        for guard in self._guards:
            decision = guard.decide(request)
            if isinstance(decision, Rejection):
                return _answer(decision)
            _passed(request).append(decision)
        return None

    async def _view_async(self, request: HttpRequest, *_: object) -> HttpResponse | None:
        for guard in self._guards:
            decision = await guard.decide_async(request)
            if isinstance(decision, Rejection):
                return _answer(decision)
            _passed(request).append(decision)
        return None

    def _finished(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        for decision in reversed(_passed(request)):
            _with_headers(response, decision)
        return response


def _configured() -> list[_Guard]:
    found = getattr(settings, "LATCHKEY", None)
    if not isinstance(found, dict) or not found or not found.keys() <= {"verify", "ratelimit"}:
        raise ImproperlyConfigured(
            'The setting LATCHKEY must have `verify`, `ratelimit` or both, such as {"verify": {"api_id": "api_123"}}.'
        )
    guards = []
    if "verify" in found:
        guards.append(cast(_Guard, verify(**found["verify"])))
    if "ratelimit" in found:
        guards.append(cast(_Guard, ratelimit(**found["ratelimit"])))
    return guards


def _passed(request: HttpRequest) -> list[Passed]:
    found: list[Passed] = request.__dict__.setdefault("_latchkey_passed", [])
    return found


def _answer(rejection: Rejection) -> HttpResponse:
    return HttpResponse(rejection.body, status=rejection.status, headers=dict(rejection.headers))


async def _awaitable(response: HttpResponseBase) -> HttpResponseBase:
    return response


async def _awaited(response: Awaitable[HttpResponseBase], decision: Passed) -> HttpResponseBase:
    try:
        answer = await response
    except BaseException:
        _failed(decision)
        raise
    return _with_headers(answer, decision)


def _failed(*decisions: Passed) -> None:
    """There is no answer, because the view has failed or its end user has hung up."""
    for decision in decisions:
        if decision.held is not None:
            decision.held.end(complete=False)


def _decided_in_vain(deciding: Future[Decision]) -> None:
    if not deciding.cancelled() and isinstance(decision := deciding.result(), Passed):
        _failed(decision)


def _watch(response: Any, held: HeldAnswer) -> None:
    """Ends the hold with the answer."""
    held.end_with(response)
    if getattr(response, "is_rendered", True):
        _count(response, held)
    else:
        response.add_post_render_callback(lambda rendered: _count(rendered, held))


def _count(response: Any, held: HeldAnswer) -> None:
    if not held.begin(response.status_code):
        return
    if not response.streaming:
        held.sent(len(response.content))
        response._resource_closers.append(lambda: held.end(complete=True))
        return
    body = response.streaming_content
    if response.is_async:
        response.streaming_content = _counted(body, held)
        # It has no end of its own if nothing was read.
        response._resource_closers.append(lambda: held.end(complete=False))
    else:
        response.streaming_content = CountedBody(body, held, body)


async def _counted(body: AsyncIterator[bytes], held: HeldAnswer) -> AsyncIterator[bytes]:
    is_complete = False
    try:
        async for part in body:
            held.sent(len(part))
            yield part
        is_complete = True
    finally:
        held.end(complete=is_complete)


def _with_headers(response: HttpResponseBase, decision: Passed) -> HttpResponseBase:
    if decision.held is not None:
        _watch(response, decision.held)
    for name, value in decision.headers.items():
        # An inner guard has decided later, and has added its headers already.
        response[name] = joined(value, response.get(name))
    return response
