"""The Python client of Latchkey: issue, verify and limit API keys."""

from latchkey._call import Attempt, AttemptEnd, CallOptions, Page, Pagination, RateLimit, Result
from latchkey._client import AsyncLatchkey, Latchkey
from latchkey._error import ErrorType, InputError, LatchkeyError
from latchkey._secret import Secret
from latchkey._unset import UNSET, Unset
from latchkey._version import VERSION as __version__
from latchkey._webhook import WebhookError, WebhookEvent, verify_webhook

__all__ = [
    "UNSET",
    "AsyncLatchkey",
    "Attempt",
    "AttemptEnd",
    "CallOptions",
    "ErrorType",
    "InputError",
    "Latchkey",
    "LatchkeyError",
    "Page",
    "Pagination",
    "RateLimit",
    "Result",
    "Secret",
    "Unset",
    "WebhookError",
    "WebhookEvent",
    "__version__",
    "verify_webhook",
]
