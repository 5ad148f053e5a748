"""The Python client of Latchkey: issue, verify and limit API keys."""

from latchkey._call import Attempt, AttemptEnd, CallOptions, Page, Pagination, RateLimit, Result
from latchkey._client import AsyncLatchkey, Latchkey
from latchkey._error import ErrorType, InputError, LatchkeyError
from latchkey._hold import Held, HoldTimes, OpenHold, Settlement, UnsettledHold
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
    "Held",
    "HoldTimes",
    "InputError",
    "Latchkey",
    "LatchkeyError",
    "OpenHold",
    "Page",
    "Pagination",
    "RateLimit",
    "Result",
    "Secret",
    "Settlement",
    "Unset",
    "UnsettledHold",
    "WebhookError",
    "WebhookEvent",
    "__version__",
    "verify_webhook",
]
