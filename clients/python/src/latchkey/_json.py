"""Between the JSON of the service and the types of this package."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from latchkey._secret import Secret
from latchkey._unset import UNSET
from latchkey.types import _ANY_JSON

Decoder = Callable[[Any], Any]


def encode(value: object) -> bytes:
    """The input as JSON, with the names of the API and without what is `UNSET`.

    Secrets are revealed, except inside of members that hold any JSON, where they are `[redacted]`.
    """
    text = json.dumps(_named(value), default=_encode_other, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def _named(value: object) -> object:
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, Mapping):
        return {
            camel(name): member if name in _ANY_JSON else _named(member)
            for name, member in value.items()
            if member is not UNSET
        }
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_named(member) for member in value]
    return value


def _encode_other(value: object) -> object:
    if isinstance(value, Secret):
        return repr(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"A value of the type {type(value).__name__} is no JSON: convert it first.")


@lru_cache(maxsize=1024)
def camel(name: str) -> str:
    """The name of a member in the API: `api_id` is `apiId` there."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


class UnexpectedShape(ValueError):
    """An answer does not have the declared type. The message names the place."""


def decode(type_: Any, value: object) -> Any:
    """The value as an instance of a type. Members that the type does not have are ignored.

    Raises:
        UnexpectedShape: A member is missing or has another type.
    """
    return _decoder(type_)(value)


@lru_cache(maxsize=1024)
def _decoder(type_: Any) -> Decoder:
    origin, arguments = get_origin(type_), get_args(type_)
    if type_ is Any:
        return lambda value: value
    if origin in (Union, types.UnionType):
        (inner,) = (each for each in arguments if each is not type(None))
        decode_inner = _decoder(inner)
        return lambda value: None if value is None else decode_inner(value)
    if origin is list:
        return _list_decoder(_decoder(arguments[0]))
    if origin is dict:
        return _dict_decoder(_decoder(arguments[1]))
    if origin is Literal:
        # A newer service can have more values.
        return _check(type(arguments[0]))
    if type_ is Secret:
        return lambda value: Secret(_check(str)(value))
    if dataclasses.is_dataclass(type_):
        return _object_decoder(type_)
    return _check(type_)


def _check(type_: Any) -> Decoder:
    def decode_value(value: object) -> object:
        # A boolean is an integer in Python, and not in JSON.
        if isinstance(value, type_) and (type_ is bool or not isinstance(value, bool)):
            return value
        if type_ is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        raise UnexpectedShape(f" is not of the type {type_.__name__}")

    return decode_value


def _list_decoder(decode_entry: Decoder) -> Decoder:
    def decode_list(value: object) -> list[Any]:
        if not isinstance(value, list):
            raise UnexpectedShape(" is no list")
        return [_inside(f"[{i}]", decode_entry, entry) for i, entry in enumerate(value)]

    return decode_list


def _dict_decoder(decode_value: Decoder) -> Decoder:
    def decode_dict(value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise UnexpectedShape(" is no object")
        return {name: _inside(f".{name}", decode_value, member) for name, member in value.items()}

    return decode_dict


def _object_decoder(class_: Any) -> Decoder:
    hints = get_type_hints(class_)
    fields = [
        (field.name, camel(field.name), _decoder(hints[field.name]), field.default is dataclasses.MISSING)
        for field in dataclasses.fields(class_)
    ]

    def decode_object(value: object) -> object:
        if not isinstance(value, dict):
            raise UnexpectedShape(" is no object")
        members: dict[str, Any] = {}
        for name, wire, decode_member, is_required in fields:
            if wire in value:
                members[name] = _inside(f".{wire}", decode_member, value[wire])
            elif is_required:
                raise UnexpectedShape(f".{wire} is missing")
        return class_(**members)

    return decode_object


def _inside(place: str, decoder: Decoder, value: object) -> Any:
    try:
        return decoder(value)
    except UnexpectedShape as error:
        raise UnexpectedShape(f"{place}{error}") from None
