"""Verifies messages to webhooks, as Standard Webhooks says."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from latchkey import types
from latchkey._json import UnexpectedShape, decode
from latchkey._secret import Secret

_PREFIX = "whsec_"
_TOLERANCE = 300
# The service sends two while a secret rotates.
_SIGNATURES_MAX = 16
# As the specification says.
_SECRET_BYTES = range(24, 65)


@dataclass(frozen=True, kw_only=True)
class WebhookEvent:
    """An event that a webhook gets."""

    id: str
    """The same in every delivery of the event."""
    type: str
    """What happened, such as `key.created`."""
    version: int
    """The version of the schema of `data`."""
    timestamp: str
    """When it happened, in the form of ISO 8601."""
    data: types.EventData | Mapping[str, Any]
    """What the event is about: of the class of its type, such as `KeyCreatedEvent`, or a mapping for a type that this
    version of the client does not know."""


class Headers(Protocol):
    """The headers of a request: a dictionary, or what a framework has for them."""

    def items(self) -> Iterable[tuple[str, str]]: ...


class WebhookError(Exception):
    """A message that is not from the service, or too old. Answer it with 401."""


def verify_webhook(
    body: bytes | str,
    headers: Headers,
    secret: str | Secret | Sequence[str | Secret],
    *,
    now: Callable[[], float] = time.time,
) -> WebhookEvent:
    """The event of a message to a webhook, after its signature and its time were checked as Standard Webhooks says.

    Args:
        body: The body as it was received: parsing and printing it again changes its bytes.
        headers: The headers of the request. Their names can have any case.
        secret: The secret of the webhook, or several: a message with a signature by one of them is accepted.
        now: The clock, in seconds since 1970. A message may be up to 5 minutes old.

    Raises:
        WebhookError: The message is not from the service, was changed, or is too old.
        ValueError: The secret cannot be one.
    """
    secrets = [secret] if isinstance(secret, (str, Secret)) else list(secret)
    if not secrets:
        raise ValueError("The secret of the webhook is missing.")
    keys = [_key_of(each) for each in secrets]
    lowered = {name.lower(): value for name, value in headers.items()}
    id, timestamp, signature = (lowered.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not (id and timestamp and signature):
        raise WebhookError("The message has no signature.")
    if not re.fullmatch("[0-9]{1,12}", timestamp):
        raise WebhookError("The time of the message is not a number.")
    if abs(now() - int(timestamp)) > _TOLERANCE:
        raise WebhookError("The message is more than 5 minutes old, or the clock of one side is wrong.")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{id}.{timestamp}.".encode() + content
    found = [_bytes_of(each[3:]) for each in signature.split(" ")[:_SIGNATURES_MAX] if each.startswith("v1,")]
    # Every comparison is made, in constant time.
    matches = [
        hmac.compare_digest(hmac.digest(key, signed, hashlib.sha256), each)
        for key in keys
        for each in found
        if each is not None
    ]
    if not any(matches):
        raise WebhookError("No signature of the message is by the secret of the webhook.")
    return _event_of(content)


def _key_of(secret: str | Secret) -> bytes:
    text = secret.reveal() if isinstance(secret, Secret) else secret
    key = _bytes_of(text.strip().removeprefix(_PREFIX))
    if key is None or len(key) not in _SECRET_BYTES:
        raise ValueError("The secret of the webhook must be `whsec_` and Base64, as create_webhook returned it.")
    return key


def _bytes_of(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


@dataclass(frozen=True, kw_only=True)
class _Envelope:
    id: str
    type: str
    version: int
    timestamp: str
    data: dict[str, Any]


def _event_of(content: bytes) -> WebhookEvent:
    try:
        read: _Envelope = decode(_Envelope, json.loads(content))
        known = types._EVENTS.get(read.type)
        data = read.data if known is None else decode(known, read.data)
    except (ValueError, RecursionError, UnexpectedShape) as error:
        raise WebhookError("The message is not an event.") from error
    return WebhookEvent(id=read.id, type=read.type, version=read.version, timestamp=read.timestamp, data=data)
