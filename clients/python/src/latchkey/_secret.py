"""Texts that must not be logged."""

from __future__ import annotations

import hmac
from typing import NoReturn

REDACTED = "[redacted]"


class Secret:
    """A text that must not be logged, such as a key string.

    It prints as `[redacted]`; `reveal()` returns the text. It cannot be pickled.
    """

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """The text itself."""
        return self.__text

    def __repr__(self) -> str:
        return REDACTED

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__text.encode(), other.__text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self.__text))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("A Secret cannot be pickled: use reveal() where its text may be stored.")
