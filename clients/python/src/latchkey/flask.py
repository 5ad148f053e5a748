"""Decorators for Flask that verify keys and limit requests.

@app.get("/documents")
@verify(api_id="api_123")
def documents(): ...
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import flask
from werkzeug.exceptions import HTTPException

from latchkey._client import Latchkey
from latchkey._held_answer import CountedBody, HeldAnswer
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

__all__ = ["Guard", "Rejection", "VerifiedKey", "ratelimit", "verify"]

View = TypeVar("View", bound=Callable[..., Any])


def _get_key(_request: flask.Request) -> VerifiedKey | None:
    key: VerifiedKey | None = flask.g.latchkey
    return key


def _set_key(_request: flask.Request, key: VerifiedKey | None) -> None:
    flask.g.latchkey = key


_reader: RequestReader[flask.Request] = RequestReader(
    method=lambda request: request.method,
    values=lambda request, header: request.headers.getlist(header),
    route=lambda request: None if request.url_rule is None else request.url_rule.rule,
    address=lambda request: request.remote_addr,
    get_key=_get_key,
    set_key=_set_key,
)


class Guard:
    """Decides about requests before their view runs: a decorator of one view, or for all views with `protect`."""

    def __init__(self, decider: Decider[flask.Request, Any], client: Latchkey) -> None:
        self._decider = decider
        self._client = client

    def __call__(self, view: View) -> View:
        """The view behind the guard."""

        @functools.wraps(view)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            decision = self._decide()
            if isinstance(decision, flask.Response):
                return decision
            try:
                return flask.current_app.ensure_sync(view)(*args, **kwargs)
            except HTTPException:
                # It becomes an answer.
                raise
            except BaseException:
                if decision is not None:
                    decision.end(complete=False)
                raise

        return cast(View, guarded)

    def protect(self, app: flask.Flask | flask.Blueprint) -> None:
        """Puts the guard in front of all views of an application or a blueprint."""

        def decide() -> flask.Response | None:
            decision = self._decide()
            if isinstance(decision, HeldAnswer):
                flask.g._latchkey_held = decision
            return decision if isinstance(decision, flask.Response) else None

        def end(error: BaseException | None) -> None:
            held: HeldAnswer | None = flask.g.get("_latchkey_held")
            # An application that propagates errors has no answer.
            if held is not None and error is not None:
                held.end(complete=False)

        app.before_request(decide)
        app.teardown_request(end)

    def _decide(self) -> flask.Response | HeldAnswer | None:
        # The functions of the options can need it after its end.
        request = cast(Any, flask.request)._get_current_object()
        decision = self._decider.decide(self._client, request)
        if isinstance(decision, Rejection):
            return flask.Response(decision.body, decision.status, dict(decision.headers))
        headers, held = decision.headers, decision.held

        def add_headers(response: flask.Response) -> flask.Response:
            for name, value in headers.items():
                response.headers[name] = joined(response.headers.get(name), value)
            if held is not None:
                _watch(response, held)
            return response

        flask.after_this_request(add_headers)
        return held


def _watch(response: flask.Response, held: HeldAnswer) -> None:
    """Ends the hold with the answer."""
    if not held.begin(response.status_code):
        return
    if response.is_sequence:
        held.end_with(response)
        for part in response.iter_encoded():
            held.sent(len(part))
        response.call_on_close(lambda: held.end(complete=True))
    else:
        body = CountedBody(response.iter_encoded(), held, response.response)
        # A server can send it after the response was dropped: that of a file, for example.
        held.end_with(body)
        response.response = body


def verify(*, latchkey: Latchkey | None = None, **options: Unpack[VerifyOptions[flask.Request]]) -> Guard:
    """Verifies the key of each request. Views find it in `g.latchkey`.

    It is None only with `fail_open`, while the service is unreachable.

    Args:
        latchkey: What calls the service. Omitted: `Latchkey(retry_wait_max=0)`, with the environment.

    Raises:
        ValueError: An option cannot be used.
    """
    return Guard(Verifier(options, _reader), latchkey or Latchkey(retry_wait_max=0))


def ratelimit(*, latchkey: Latchkey | None = None, **options: Unpack[RatelimitOptions[flask.Request]]) -> Guard:
    """Limits requests.

    Args:
        latchkey: What calls the service. Omitted: `Latchkey(retry_wait_max=0)`, with the environment.

    Raises:
        ValueError: An option cannot be used.
    """
    return Guard(Limiter(options, _reader), latchkey or Latchkey(retry_wait_max=0))
