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

from latchkey._client import Latchkey
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
            rejected = self._decide()
            return rejected if rejected is not None else flask.current_app.ensure_sync(view)(*args, **kwargs)

        return cast(View, guarded)

    def protect(self, app: flask.Flask | flask.Blueprint) -> None:
        """Puts the guard in front of all views of an application or a blueprint."""
        app.before_request(self._decide)

    def _decide(self) -> flask.Response | None:
        decision = self._decider.decide(self._client, flask.request)
        if isinstance(decision, Rejection):
            return flask.Response(decision.body, decision.status, dict(decision.headers))
        headers = decision.headers

        def add_headers(response: flask.Response) -> flask.Response:
            for name, value in headers.items():
                response.headers[name] = joined(response.headers.get(name), value)
            return response

        flask.after_this_request(add_headers)
        return None


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
