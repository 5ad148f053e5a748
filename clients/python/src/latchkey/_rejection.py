"""The answers to requests that do not reach their handler. `/auth/verify` of the service answers in the same way."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

_LIMITS_LENGTH_MAX = 1_024

_TITLES: Final = {
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    429: "Too Many Requests",
    503: "Service Unavailable",
}

_STATUSES: Final = {
    "MISSING": 401,
    "MALFORMED": 401,
    "NOT_FOUND": 401,
    "EXPIRED": 401,
    "DISABLED": 401,
    "USAGE_EXCEEDED": 402,
    "FORBIDDEN": 403,
    "INSUFFICIENT_PERMISSIONS": 403,
    "RATE_LIMITED": 429,
    "UNDECIDED": 503,
}

DETAILS: Final = {
    "NOT_FOUND": "The API key is not valid.",
    "EXPIRED": "The API key has expired.",
    "DISABLED": "The API key is disabled.",
    "FORBIDDEN": "The API key may not be used here.",
    "INSUFFICIENT_PERMISSIONS": "The API key lacks a permission.",
    "USAGE_EXCEEDED": "The API key has too few credits.",
    "RATE_LIMITED": "The API key has reached a limit.",
}
"""The sentences for the codes of a verification."""


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """The answer to a request that does not reach its handler."""

    status: int
    headers: Mapping[str, str]
    code: str
    """The code of the verification, or `MISSING`, `MALFORMED`, `UNDECIDED` if there was none."""
    detail: str
    """One sentence for the end user."""
    body: bytes
    """JSON: `{"meta": …, "error": …}`, as the service answers."""


def rejection_of(code: str, detail: str, request_id: str | None, headers: Mapping[str, str]) -> Rejection:
    status = _STATUSES[code]
    meta = {} if request_id is None else {"requestId": request_id}
    error = {"title": _TITLES[status], "detail": detail, "status": status, "type": "about:blank", "code": code}
    return Rejection(
        status=status,
        headers={
            "Content-Type": "application/json",
            "Cache-Control": "no-store",
            "X-Latchkey-Code": code,
            **headers,
        },
        code=code,
        detail=detail,
        body=json.dumps({"meta": meta, "error": error}).encode(),
    )


def challenge(header: str | None, error: str | None = None) -> dict[str, str]:
    """`WWW-Authenticate` for a key in a header, or elsewhere (None), with the error of RFC 6750, section 3.1."""
    is_bearer = header is not None and header.lower() == "authorization"
    place = "" if header is None or is_bearer else f', header="{header}"'
    reason = "" if error is None else f', error="{error}"'
    return {"WWW-Authenticate": f'{"Bearer" if is_bearer else "ApiKey"} realm="api"{place}{reason}'}


def retry_after(milliseconds: float | None) -> dict[str, str]:
    """`Retry-After` in whole seconds, at least 1. Nothing without a time."""
    return {} if milliseconds is None else {"Retry-After": str(max(1, math.ceil(milliseconds / 1_000)))}


@dataclass(frozen=True, kw_only=True)
class LimitState:
    """A limit, as verifications return it."""

    name: str
    limit: int
    duration: int | None
    """Milliseconds; None: unknown."""
    exceeded: bool
    remaining: int
    reset: int
    """Unix time in milliseconds."""


def limit_headers(limits: Iterable[LimitState]) -> dict[str, str]:
    """The fields of draft-ietf-httpapi-ratelimit-headers-10. The tightest limits come first."""
    now = time.time() * 1_000
    policies: list[str] = []
    states: list[str] = []
    length = 0
    for each in sorted(limits, key=lambda one: -1 if one.exceeded else one.remaining / max(1, one.limit)):
        item = f'"{_encoded(each.name)}"'
        window = "" if each.duration is None else f";w={math.ceil(each.duration / 1_000)}"
        policy = f"{item};q={each.limit}{window}"
        length += len(policy) + 2
        if length > _LIMITS_LENGTH_MAX and policies:
            break
        policies.append(policy)
        states.append(f"{item};r={each.remaining};t={max(0, math.ceil((each.reset - now) / 1_000))}")
    return {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(states)} if policies else {}


def _encoded(text: str) -> str:
    """Percent-encodes a text, so that no character of it has a meaning in a header."""
    return quote(text.encode("utf-8", "replace"), safe="!'()*")
