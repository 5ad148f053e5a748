"""Both clients against a service, by the shared list. `sdk/test/scenarios.test.ts` says what its members mean."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from scenarios import arguments, has_members, load, snake, substitute
from service import Network, Workspace, network

from latchkey import AsyncLatchkey, Attempt, Latchkey, LatchkeyError, Secret

Client = type[Latchkey] | type[AsyncLatchkey]


@pytest.fixture(scope="module", params=[Latchkey, AsyncLatchkey], ids=["sync", "async"])
def client(request: pytest.FixtureRequest) -> Client:
    found: Client = request.param
    return found


@pytest.fixture(scope="module")
def workspace(client: Client) -> Workspace:
    return Workspace.create(client.__name__)


@pytest.fixture
def disturbed() -> Iterator[Network]:
    with network() as opened:
        yield opened


@pytest.mark.parametrize("scenario", load("scenarios.json"), ids=lambda scenario: scenario["name"])
def test_scenario(scenario: dict[str, Any], client: Client, workspace: Workspace, disturbed: Network) -> None:
    saved: dict[str, Any] = {"apiId": workspace.api_id}
    for step in scenario["steps"]:
        disturbed.disturbance = step.get("network")
        attempts: list[Attempt] = []
        body = substitute(step["input"], saved)
        root_key = step.get("rootKey", workspace.root_key)
        for i, ended in enumerate(_run(client, step, body, disturbed.url, root_key, attempts.append)):
            each = {**step, "error": {"type": step["errors"][i]}} if "errors" in step else step
            _check(each, ended, saved)
        disturbed.disturbance = None
        if "attempts" in step:
            assert len(attempts) == step["attempts"]


def _run(
    client: Client,
    step: dict[str, Any],
    body: dict[str, Any],
    url: str,
    root_key: str | Secret,
    on_request: Callable[[Attempt], None],
) -> list[Any]:
    """How each repetition of the call ended."""
    repeat = step.get("repeat", 1)
    namespace, verb = map(snake, step["call"].split("."))
    options: dict[str, Any] = {
        "timeout": step.get("timeout", 10_000) / 1_000,
        "circuit_breaker": step.get("circuitBreaker", True),
        "retry_charges": step.get("retryCharges", False),
        "on_request": on_request,
    }

    def call(latchkey: Any) -> Any:
        method = getattr(getattr(latchkey, namespace), verb)
        return method.all(**arguments(body)) if step.get("all") else method(**arguments(body))

    async def end_async(latchkey: AsyncLatchkey) -> Any:
        try:
            called = call(latchkey)
            return [entry async for entry in called] if isinstance(called, AsyncIterator) else await called
        except LatchkeyError as error:
            return error

    async def run_async() -> list[Any]:
        async with AsyncLatchkey(url, root_key, **options) as latchkey:
            return [await end_async(latchkey) for _ in range(repeat)]

    def end(latchkey: Latchkey) -> Any:
        try:
            called = call(latchkey)
            return list(called) if isinstance(called, Iterator) else called
        except LatchkeyError as error:
            return error

    if client is AsyncLatchkey:
        return asyncio.run(run_async())
    with Latchkey(url, root_key, **options) as latchkey:
        return [end(latchkey) for _ in range(repeat)]


def _check(step: dict[str, Any], ended: Any, saved: dict[str, Any]) -> None:
    expected = step.get("error")
    if expected:
        assert isinstance(ended, LatchkeyError), ended
        assert (ended.type, ended.status) == (expected["type"], expected.get("status"))
        if "location" in expected:
            assert [each.location for each in ended.errors] == [expected["location"]]
        if "message" in expected:
            assert str(ended) == expected["message"]
        if "status" in expected:
            assert (ended.request_id or "").startswith("req_")
        return
    assert not isinstance(ended, LatchkeyError), ended
    if not step.get("all"):
        assert re.match("req_", ended.request_id)
    actual = ended if step.get("all") else ended.data
    assert has_members(actual, substitute(step.get("data", {}), saved)), actual
    if "count" in step:
        ids = [getattr(entry, "key_id", None) or entry.override_id for entry in actual]
        assert (len(set(ids)), len(ids)) == (step["count"], step["count"])
    for member, name in step.get("save", {}).items():
        saved[name] = getattr(actual, snake(member))
        assert saved[name] is not None
