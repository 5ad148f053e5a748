"""The lists of scenarios that the clients in all languages share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

LISTS = Path(__file__).parents[3] / "sdk" / "test"


def load(name: str) -> list[dict[str, Any]]:
    scenarios: list[dict[str, Any]] = json.loads((LISTS / name).read_text())
    assert scenarios
    return scenarios


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def arguments(value: dict[str, Any]) -> dict[str, Any]:
    """The members of an input as keyword arguments."""
    return {snake(name): member for name, member in value.items()}


def substitute(value: Any, saved: dict[str, Any]) -> Any:
    """The value with `$name` in each text replaced by what was saved under the name."""
    if isinstance(value, str):
        if value[:1] == "$" and value[1:] in saved:
            return saved[value[1:]]
        return re.sub(r"\$([A-Za-z0-9_]+)", lambda found: str(saved[found[1]]), value)
    if isinstance(value, list):
        return [substitute(each, saved) for each in value]
    if isinstance(value, dict):
        return {name: substitute(each, saved) for name, each in value.items()}
    return value


def has_members(actual: Any, expected: Any) -> bool:
    """Whether an answer has at least the expected members, whose names are those of the API."""
    if isinstance(expected, dict):
        get = actual.get if isinstance(actual, dict) else lambda name: getattr(actual, snake(name))
        return all(has_members(get(name), member) for name, member in expected.items())
    return bool(actual == expected and type(actual) is type(expected))
