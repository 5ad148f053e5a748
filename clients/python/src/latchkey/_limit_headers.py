"""The headers that say what is left of limits."""

from __future__ import annotations

import base64
import hashlib
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from latchkey.types import VerifyKeyOutput

_LENGTH_MAX = 1_024
_PARTITION_BYTES = 9


@dataclass(frozen=True, kw_only=True)
class LimitState:
    """A limit after a call."""

    name: str
    limit: int
    duration: int | None = None
    """Milliseconds; None: none, or unknown."""
    unit: str | None = None
    """What it counts. None: requests."""
    exceeded: bool
    remaining: int
    reset: int | None = None
    """When the window ends, Unix time in milliseconds; None: it has none."""
    retry_after: int | None = None
    """If it is exceeded: milliseconds until the call can pass. None: unknown, or never."""
    partition: str | None = None
    """What the limit counts for: the id of a key or of an identity, or an identifier."""


def limits_of(data: VerifyKeyOutput) -> list[LimitState]:
    """The limits in the answer to a verification. Those in shadow mode deny nothing, and clients need not know them."""
    identity_id = data.identity.id if data.identity else None
    return [
        LimitState(
            name=each.name,
            limit=each.limit,
            duration=each.duration,
            exceeded=each.exceeded,
            remaining=each.remaining,
            reset=each.reset,
            retry_after=each.retry_after,
            partition=identity_id if each.from_ == "identity" else data.key_id,
        )
        for each in data.ratelimits or ()
        if not each.shadow
    ] + [
        LimitState(
            name=each.name,
            limit=each.limit,
            unit="concurrent-requests",
            exceeded=each.exceeded,
            remaining=max(0, each.limit - each.in_use),
            retry_after=each.retry_after,
            partition=identity_id if each.from_ == "identity" else data.key_id,
        )
        for each in data.concurrency or ()
    ]


def limit_headers(limits: Iterable[LimitState], now: float | None = None) -> dict[str, str]:
    """The fields of draft-ietf-httpapi-ratelimit-headers-10.

    The tightest limits come first, and those that do not fit are left out.
    """
    at = time.time() * 1_000 if now is None else now
    policies: list[str] = []
    states: list[str] = []
    length = 0
    for each in sorted(limits, key=lambda one: -1 if one.exceeded else one.remaining / max(1, one.limit)):
        item = f'"{_encoded(each.name)}"'
        pk = "" if each.partition is None else f";pk={_partition_key(each.partition)}"
        unit = "" if each.unit is None else f';qu="{each.unit}"'
        window = "" if each.duration is None else f";w={math.ceil(each.duration / 1_000)}"
        policy = f"{item};q={each.limit}{unit}{window}{pk}"
        length += len(policy) + 2
        if length > _LENGTH_MAX and policies:
            break
        policies.append(policy)
        seconds = _seconds_left(each, at)
        left = "" if seconds is None else f";t={seconds}"
        states.append(f"{item};r={each.remaining}{left}{pk}")
    return {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(states)} if policies else {}


def _seconds_left(limit: LimitState, now: float) -> int | None:
    """Seconds until the limit admits more, rounded up; None if unknown. `Retry-After` must not be earlier."""
    waits = [] if limit.reset is None else [limit.reset - now]
    if limit.exceeded and limit.retry_after is not None:
        waits.append(limit.retry_after)
    return max(0, math.ceil(min(waits) / 1_000)) if waits else None


def _partition_key(partition: str) -> str:
    """The key of a partition, a Byte Sequence of RFC 9651: a digest, because identifiers can be addresses or names."""
    digest = hashlib.sha256(partition.encode("utf-8", "replace")).digest()[:_PARTITION_BYTES]
    return f":{base64.b64encode(digest).decode()}:"


def _encoded(text: str) -> str:
    """Percent-encodes a text, so that no character of it has a meaning in a header."""
    return quote(text.encode("utf-8", "replace"), safe="!'()*")
