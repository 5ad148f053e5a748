"""The answers to requests that do not reach their handler. `/auth/verify` of the service answers in the same way."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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
