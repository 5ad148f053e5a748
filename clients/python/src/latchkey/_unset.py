"""The value of an argument that was omitted."""

from __future__ import annotations

import enum
from typing import Final, Literal


class Unset(enum.Enum):
    """The type of `UNSET`."""

    UNSET = "UNSET"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""The value of an omitted argument. It is not sent, where `None` is sent as null: null removes a value, for example."""
