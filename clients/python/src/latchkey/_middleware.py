"""What the middleware of all frameworks share: from a request to a decision."""

from __future__ import annotations

import ipaddress
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar, cast

from latchkey._call import Result
from latchkey._client import AsyncLatchkey, Latchkey
from latchkey._error import LatchkeyError
from latchkey._held_answer import HeldAnswer, HoldOptions
from latchkey._hold import AsyncHoldKeeper, HoldKeeper, HoldState, OpenHold, checked_times, hold_input
from latchkey._limit_headers import LimitState, limit_headers, limits_of
from latchkey._rejection import DETAILS, Rejection, challenge, rejection_of, retry_after
from latchkey.types import LimitOutput, VerifyKeyInputRatelimitsEntry, VerifyKeyOutput

if sys.version_info >= (3, 11):
    from typing import Required, TypedDict
else:
    from typing_extensions import Required, TypedDict

_log = logging.getLogger("latchkey")

# Printable, without space and comma, because servers join repeated headers by commas.
_KEY = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,512}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_METHOD = re.compile(r"[A-Z]{1,20}")
_TAG_LENGTH_MAX = 128

Request = TypeVar("Request")
Value = TypeVar("Value")
Output = TypeVar("Output")


@dataclass(frozen=True, kw_only=True)
class VerifiedKey(VerifyKeyOutput):
    """A key that was verified, as `keys.verify_key` returns it."""

    key_id: str
    api_id: str
    hold: OpenHold | None = None
    """The hold of the request, if `verify` has the option `hold`."""


class MiddlewareOptions(TypedDict, Generic[Request], total=False):
    """Options of `verify` and `ratelimit`. A function in place of a value gets the request."""

    fail_open: bool
    """Whether requests pass while the service cannot be reached or fails. Default: False; they are answered with 503.
    A wrong configuration, such as an unknown root key, never lets requests pass."""
    on_error: Callable[[Exception, Request], None]
    """Called when a request could not be decided or its hold not be settled, with the reason. Default: writes it to the
    log `latchkey`."""
    on_reject: Callable[[Rejection, Request], Rejection]
    """Changes the answer to a request that is rejected."""
    address: Callable[[Request], str | None]
    """The address of the end user: for `verify`, that of the allow-list of the API, which needs a root key; for
    `ratelimit`, that of `identifier="address"`. Headers such as `X-Forwarded-For` are only as true as the proxy that
    sets them."""


class VerifyOptions(MiddlewareOptions[Request], Generic[Request], total=False):
    """Options of `verify`."""

    api_id: Required[str | Sequence[str]]
    """The API whose keys are accepted, or several."""
    permissions: str | Callable[[Request], str]
    """A permission query that the key must satisfy, such as `documents.read AND (admin OR billing.write)`."""
    cost: int | Callable[[Request], int]
    """The credits of the request, if the key has a balance. Default: 1. 0: check without charging."""
    hold: HoldOptions[Request]
    """Holds the cost while the handler answers, and charges what the answer did cost when it has ended. It needs a root
    key. With `{}`, that is what the handler reported with `hold.report`, or else `cost`."""
    limits: Sequence[VerifyKeyInputRatelimitsEntry] | Callable[[Request], Sequence[VerifyKeyInputRatelimitsEntry]]
    """The limits to charge, by name; with `limit` and `duration`, a limit of its own, which needs a root key. Omitted:
    those of the key and its identity with `auto_apply`."""
    header: str
    """The header with the key alone. Default: `Authorization`, as `Bearer <key>`."""
    key: Callable[[Request], str | None]
    """Finds the key elsewhere. None: the request has none."""
    path: str
    """The route in the analytics, as the tag `path=…`, such as `/users/{id}`. Default: that of the framework."""
    tags: Sequence[str] | Callable[[Request], Sequence[str]]
    """Other tags in the analytics. Method and route are always sent."""


class RatelimitOptions(MiddlewareOptions[Request], Generic[Request], total=False):
    """Options of `ratelimit`."""

    namespace: Required[str]
    """Name or id of the namespace. A new name creates a namespace."""
    limit: Required[int | Callable[[Request], int]]
    """Maximum cost per window, for each identifier."""
    duration: Required[int | Callable[[Request], int]]
    """Length of the window in milliseconds."""
    cost: int | Callable[[Request], int]
    """Cost of the request. Default: 1."""
    identifier: Required[str | Callable[[Request], str | None]]
    """What is counted: `owner`, the external id of the identity of the key that `verify` accepted before, or else its
    key id; `address`, the address of the connection, of IPv6 its first 64 bits; or what a function returns."""


@dataclass(frozen=True, kw_only=True)
class RequestReader(Generic[Request]):
    """How the middleware reads the requests of a framework."""

    method: Callable[[Request], str]
    values: Callable[[Request, str], Sequence[str]]
    """Every value of a header, or all of them joined by commas."""
    route: Callable[[Request], str | None]
    """The pattern of the route; None if there is none."""
    address: Callable[[Request], str | None]
    """The address of the connection, or the one that the configuration of the framework trusts."""
    get_key: Callable[[Request], VerifiedKey | None]
    """The key that `verify` accepted.

    Raises:
        AttributeError: The request was not verified.
    """
    set_key: Callable[[Request, VerifiedKey | None], None]


@dataclass(frozen=True, kw_only=True)
class Passed:
    """The request reaches its handler."""

    headers: Mapping[str, str]
    """Headers for the answer of the handler."""
    held: HeldAnswer | None = None
    """What must learn of the answer."""


Decision = Passed | Rejection


class Unverified(ValueError):
    """The owner of the key is not known, because the service could not verify it."""


class Decider(Generic[Request, Output]):
    """Decides about requests: `inputs` makes the call of the service, `conclude` reads its answer."""

    undecided: str

    def __init__(self, options: MiddlewareOptions[Request], reader: RequestReader[Request]) -> None:
        self.reader = reader
        self._fail_open = options.get("fail_open", False)
        self._on_error = options.get("on_error", _write)
        self._on_reject = options.get("on_reject")
        self._address = options.get("address")

    def inputs(self, request: Request) -> dict[str, Any] | Rejection:
        """The arguments of the call, or why there is none."""
        raise NotImplementedError

    def conclude(
        self, request: Request, result: Result[Output], inputs: dict[str, Any], client: Latchkey | AsyncLatchkey
    ) -> Decision:
        raise NotImplementedError

    def call(self, client: Latchkey, inputs: dict[str, Any]) -> Result[Output]:
        raise NotImplementedError

    async def call_async(self, client: AsyncLatchkey, inputs: dict[str, Any]) -> Result[Output]:
        raise NotImplementedError

    def decide(self, client: Latchkey, request: Request) -> Decision:
        decision: Decision
        try:
            inputs = self.inputs(request)
            if isinstance(inputs, Rejection):
                decision = inputs
            else:
                decision = self.conclude(request, self.call(client, inputs), inputs, client)
        except Exception as error:
            decision = self._failed(error, request)
        return self._changed(decision, request)

    async def decide_async(self, client: AsyncLatchkey, request: Request) -> Decision:
        decision: Decision
        try:
            inputs = self.inputs(request)
            if isinstance(inputs, Rejection):
                decision = inputs
            else:
                decision = self.conclude(request, await self.call_async(client, inputs), inputs, client)
        except Exception as error:
            decision = self._failed(error, request)
        return self._changed(decision, request)

    def _changed(self, decision: Decision, request: Request) -> Decision:
        if isinstance(decision, Rejection) and self._on_reject is not None:
            changed: object = self._on_reject(decision, request)
            # A hook that only counts or logs returns nothing. That must not let the request pass.
            return changed if isinstance(changed, Rejection) else decision
        return decision

    def _failed(self, error: Exception, request: Request) -> Decision:
        self._on_error(error, request)
        is_outage = (
            isinstance(error, LatchkeyError)
            # End users can cause it with invented keys.
            and error.type != "application/lookups_exhausted"
            and (error.status is None or error.status >= 500)
        )
        if self._fail_open and (is_outage or isinstance(error, Unverified)):
            return Passed(headers={})
        request_id, wait = (error.request_id, error.retry_after) if isinstance(error, LatchkeyError) else (None, None)
        return rejection_of("UNDECIDED", self.undecided, request_id, retry_after((wait or 1) * 1_000))


class Verifier(Decider[Request, VerifyKeyOutput]):
    """Verifies the keys of requests.

    Raises:
        ValueError: An option cannot be used. The message names it.
    """

    undecided = "The API key cannot be verified right now. Try again shortly."

    def __init__(self, options: VerifyOptions[Request], reader: RequestReader[Request]) -> None:
        super().__init__(options, reader)
        _check_names(options, VerifyOptions)
        given = options.get("api_id")
        self._apis = [given] if isinstance(given, str) else list(given or ())
        if not self._apis or not all(isinstance(each, str) and each for each in self._apis):
            raise ValueError(
                'The option `api_id` is missing: give the id of the API whose keys are accepted, such as "api_123".'
            )
        self.header = options.get("header", "Authorization")
        if not _HEADER_NAME.fullmatch(self.header):
            raise ValueError("The option `header` must be the name of a header.")
        if "header" in options and "key" in options:
            raise ValueError("The options `header` and `key` exclude each other.")
        self.finds_key = "key" in options
        self.holds = "hold" in options
        self._times = checked_times(options.get("hold", {}))
        _check_names(options.get("hold", {}), HoldOptions, "hold.")
        self._options = options

    def inputs(self, request: Request) -> dict[str, Any] | Rejection:
        options, reader = self._options, self.reader
        found = (
            _checked_key(options["key"](request))
            if "key" in options
            else _key_in(reader.values(request, self.header), self.header)
        )
        if isinstance(found, Rejection):
            return found
        # If it stays undecided, `ratelimit` must know that a verification was tried.
        reader.set_key(request, None)
        inputs: dict[str, Any] = {"key": found, "keyspaces": self._apis}
        if "permissions" in options:
            inputs["permissions"] = _resolved("permissions", options["permissions"], request)
        if "cost" in options:
            inputs["credits"] = {"cost": _resolved("cost", options["cost"], request)}
        if self.holds:
            inputs["hold"] = hold_input(self._times)
        if "limits" in options:
            inputs["ratelimits"] = _resolved("limits", options["limits"], request)
        if self._address is not None:
            inputs["client_ip"] = _present("address", self._address(request))
        tags = _resolved("tags", options.get("tags", ()), request)
        path = options.get("path") or reader.route(request)
        inputs["tags"] = _tags(tags, path, reader.method(request))
        return inputs

    def call(self, client: Latchkey, inputs: dict[str, Any]) -> Result[VerifyKeyOutput]:
        return client.keys.verify_key(**inputs)

    async def call_async(self, client: AsyncLatchkey, inputs: dict[str, Any]) -> Result[VerifyKeyOutput]:
        return await client.keys.verify_key(**inputs)

    def conclude(
        self,
        request: Request,
        result: Result[VerifyKeyOutput],
        inputs: dict[str, Any],
        client: Latchkey | AsyncLatchkey,
    ) -> Decision:
        data = result.data
        headers = limit_headers(limits_of(data))
        if data.valid and data.code == "VALID" and data.key_id and data.api_id:
            members = {each.name: getattr(data, each.name) for each in fields(data)}
            held = self._held(request, data, inputs, client) if self.holds else None
            members["hold"] = None if held is None else held.hold
            self.reader.set_key(request, VerifiedKey(**members))
            return Passed(headers=headers, held=held)
        if data.code not in DETAILS:
            raise ValueError(f"The service answered with the code {data.code}.")
        if data.code in ("NOT_FOUND", "EXPIRED", "DISABLED"):
            headers |= challenge(None if self.finds_key else self.header, "invalid_token")
        if data.code == "RATE_LIMITED":
            headers |= retry_after(data.retry_after)
        return rejection_of(data.code, DETAILS[data.code], result.request_id, headers)

    def _held(
        self, request: Request, data: VerifyKeyOutput, inputs: dict[str, Any], client: Latchkey | AsyncLatchkey
    ) -> HeldAnswer:
        cost = inputs.get("credits", {}).get("cost", 1)
        state = HoldState(data.hold, cost, self._times, lambda error: self._on_error(error, request))
        keeper: HoldKeeper | AsyncHoldKeeper = (
            AsyncHoldKeeper(client.holds, state)
            if isinstance(client, AsyncLatchkey)
            else HoldKeeper(client.holds, state)
        )
        settle = self._options.get("hold", {}).get("settle")
        decide = None if settle is None else lambda answer: settle(answer, request)
        return HeldAnswer(keeper, self.reader.method(request), decide)


class Limiter(Decider[Request, LimitOutput]):
    """Limits requests.

    Raises:
        ValueError: An option cannot be used. The message names it.
    """

    undecided = "The limits cannot be checked right now. Try again shortly."

    def __init__(self, options: RatelimitOptions[Request], reader: RequestReader[Request]) -> None:
        super().__init__(options, reader)
        _check_names(options, RatelimitOptions)
        for name in ("namespace", "limit", "duration", "identifier"):
            if name not in options:
                raise ValueError(f"The option `{name}` is missing.")
        if options["identifier"] not in ("owner", "address") and not callable(options["identifier"]):
            raise ValueError('The option `identifier` must be "owner", "address" or a function.')
        self._options = options

    def inputs(self, request: Request) -> dict[str, Any]:
        options = self._options
        identifier = options["identifier"]
        if identifier == "owner":
            counted = self._owner_of(request)
        elif identifier == "address":
            counted = _network_of(_present("address", (self._address or self.reader.address)(request)))
        else:
            counted = _present("identifier", cast("Callable[[Request], str | None]", identifier)(request))
        inputs: dict[str, Any] = {
            "namespace": options["namespace"],
            "identifier": counted,
            "limit": _resolved("limit", options["limit"], request),
            "duration": _resolved("duration", options["duration"], request),
        }
        if "cost" in options:
            inputs["cost"] = _resolved("cost", options["cost"], request)
        return inputs

    def call(self, client: Latchkey, inputs: dict[str, Any]) -> Result[LimitOutput]:
        return client.ratelimits.limit(**inputs)

    async def call_async(self, client: AsyncLatchkey, inputs: dict[str, Any]) -> Result[LimitOutput]:
        return await client.ratelimits.limit(**inputs)

    def conclude(
        self, request: Request, result: Result[LimitOutput], inputs: dict[str, Any], _client: Latchkey | AsyncLatchkey
    ) -> Decision:
        data = result.data
        # The window of an override is not in the answer.
        duration = _resolved("duration", self._options["duration"], request) if data.override_id is None else None
        state = LimitState(
            name=self._options["namespace"],
            limit=data.limit,
            duration=duration,
            exceeded=not data.success,
            remaining=data.remaining,
            reset=data.reset,
            retry_after=data.retry_after,
            partition=inputs["identifier"],
        )
        # A limit in shadow mode denies nothing, and clients need not know it.
        headers = limit_headers([] if data.shadow else [state])
        if data.success:
            return Passed(headers=headers)
        detail = "A limit of requests has been reached."
        return rejection_of("RATE_LIMITED", detail, result.request_id, {**retry_after(data.retry_after), **headers})

    def _owner_of(self, request: Request) -> str:
        try:
            key = self.reader.get_key(request)
        except AttributeError:
            raise ValueError('`identifier="owner"` needs `verify` before `ratelimit`.') from None
        if key is None:
            raise Unverified("The owner of the key is unknown, because it was not verified.")
        return key.identity.external_id if key.identity is not None else key.key_id


def joined(*values: str | None) -> str:
    """Several values of one header."""
    return ", ".join(value for value in values if value is not None)


def _write(error: Exception, _request: object) -> None:
    _log.error("%s", error)


def _check_names(options: Mapping[str, Any], declared: Any, prefix: str = "") -> None:
    for name in options:
        if name not in declared.__required_keys__ | declared.__optional_keys__:
            raise ValueError(f"There is no option `{prefix}{name}`.")


def _resolved(name: str, option: Value | Callable[[Request], Value], request: Request) -> Value:
    """The value of an option for a request. A function must return one: what it decides would be left out otherwise."""
    return _present(name, option(request)) if callable(option) else option


def _present(name: str, value: Value | None) -> Value:
    if value is None or value == "":
        raise ValueError(f"The function in the option `{name}` returned nothing for a request.")
    return value


def _key_in(values: Sequence[str], header: str) -> str | Rejection:
    """The key in the values of a header."""
    is_bearer = header.lower() == "authorization"
    value = values[0].strip() if values else ""
    if len(values) <= 1 and value == "":
        detail = f"The request has no API key in the header {header}."
        return rejection_of("MISSING", detail, None, challenge(header))
    matched = re.fullmatch("bearer +(.*)", value, re.IGNORECASE | re.DOTALL) if is_bearer else None
    key = matched[1] if matched else None if is_bearer else value
    if len(values) == 1 and key is not None and _KEY.fullmatch(key):
        return key
    form = "`Bearer <key>`" if is_bearer else "the key alone"
    detail = f"The header {header} must be there once, with {form} as its value."
    return rejection_of("MALFORMED", detail, None, challenge(header, "invalid_request"))


def _checked_key(key: str | None) -> str | Rejection:
    """The key that the function of the options found."""
    if key is None or key == "":
        return rejection_of("MISSING", "The request has no API key.", None, challenge(None))
    if _KEY.fullmatch(key):
        return key
    detail = "The API key must have 1 to 512 visible ASCII characters, without commas."
    return rejection_of("MALFORMED", detail, None, challenge(None, "invalid_request"))


def _tags(own: Sequence[str], path: str | None, method: str) -> list[str]:
    tags = list(own)
    if path:
        tags.append(f"path={path}"[:_TAG_LENGTH_MAX])
    if _METHOD.fullmatch(method):
        tags.append(f"method={method}")
    return tags


def _network_of(address: str) -> str:
    """The address, or of an IPv6 address the network: an end user has 2⁶⁴ addresses of it."""
    try:
        parsed = ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
