"""Why a call failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from latchkey.types import ProblemType

ErrorType = ProblemType | Literal["network_error", "timeout", "circuit_open", "invalid_answer"]
"""Identifies an error: one of the service, no answer, a call that was not sent because the service left several without
an answer (`circuit_open`), or an answer that is not of Latchkey."""


@dataclass(frozen=True, kw_only=True)
class InputError:
    """One error in the input of a call."""

    location: str
    """Path in the schema of the input: `/properties/name/maxLength`."""
    message: str
    fix: str | None = None
    """How to fix it."""


_NAMED_MAX = 3
"""How many errors in an input a message names."""


def _with_errors(detail: str, errors: Sequence[InputError]) -> str:
    """A detail with what is wrong in the input, and how to fix it."""
    if not errors:
        return detail
    named = [f"{each.message}. {each.fix}" if each.fix else f"{each.message}." for each in errors[:_NAMED_MAX]]
    if len(errors) > _NAMED_MAX:
        named.append(f"And {len(errors) - _NAMED_MAX} more.")
    return f"{detail.removesuffix('.')}: {' '.join(named)}"


class LatchkeyError(Exception):
    """Why a call failed. Only an option that cannot be used is a `ValueError` instead.

    The message has the first errors in the input, with what to do.
    """

    type: ErrorType
    """Identifies the error; compare this one."""
    operation: str
    """The operation that was called, such as `keys.verifyKey`."""
    detail: str
    """What is wrong with this call and how to fix it."""
    status: int | None
    """The HTTP status; None without an answer."""
    errors: Sequence[InputError]
    """Each error in the input, with the type `application/invalid_input`."""
    retry_after: float | None
    """Seconds to wait before another attempt; None if the service gave none."""
    request_id: str | None
    """Identifies the call in the log of the service; None without an answer of the service."""

    def __init__(
        self,
        *,
        type: ErrorType,
        operation: str,
        detail: str,
        status: int | None = None,
        errors: Sequence[InputError] = (),
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(f"{operation}: {_with_errors(detail, errors)} ({type})")
        self.type = type
        self.operation = operation
        self.detail = detail
        self.status = status
        self.errors = tuple(errors)
        self.retry_after = retry_after
        self.request_id = request_id

    def __reduce__(self) -> tuple[Callable[..., LatchkeyError], tuple[dict[str, Any]]]:
        return (_rebuilt, (self.__dict__,))


def _rebuilt(members: dict[str, Any]) -> LatchkeyError:
    return LatchkeyError(**members)
