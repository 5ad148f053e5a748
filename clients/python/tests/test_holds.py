"""The option `hold` of every framework, by the shared list, over real connections; and work that is no request.

`sdk/test/hold-scenarios.ts` says what the members of the list mean.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import fastapi
import fastapi.responses
import flask
import httpx
import pytest
import test_middleware
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from scenarios import load, snake
from service import ROOT_KEY, URL
from test_middleware import Servers

import latchkey.django
import latchkey.fastapi
import latchkey.flask
from latchkey import AsyncLatchkey, Latchkey, LatchkeyError, OpenHold, UnsettledHold, _hold
from latchkey.types import VerifyKeyOutputHold

_DEADLINE = 60.0


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    opened = Servers()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def api_id() -> str:
    with Latchkey(URL, ROOT_KEY) as client:
        return client.apis.create_api(name="holds").data.api_id


def eventually(what: str, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE
    while not is_so():
        assert time.monotonic() < deadline, f"Waited for {what}."
        time.sleep(0.01)


class Work:
    """What a handler does."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        handler = scenario["handler"]
        self.status: int = handler.get("status", 200)
        self.chunks: list[bytes] = [chunk.encode() for chunk in handler["chunks"]]
        self.end: str | None = handler.get("end")
        self.report: dict[str, Any] | None = handler.get("report")
        self.ttl: int = scenario.get("ttl", 60_000)
        self.is_read = scenario.get("method") != "HEAD"
        self.received = 0
        self.begun = threading.Event()
        self.finished = threading.Event()
        self.key: Any = None

    @property
    def is_empty(self) -> bool:
        return self.status in (204, 304)

    def begin(self, key: Any) -> bool:
        """Reports. Returns whether the handler waits before its answer."""
        self.key = key
        if self.report is not None:
            assert key.hold.report(**self.report)
        self.begun.set()
        if not self.chunks and self.end == "throw":
            raise RuntimeError("of the handler")
        return not self.chunks and self.end == "wait"

    def steps(self) -> Iterator[bytes | Callable[[], bool]]:
        """Chunks, and conditions to wait for."""
        sent = 0
        for chunk in self.chunks:
            yield chunk
            sent += len(chunk)
            now = sent
            if self.is_read:
                yield lambda now=now: self.received >= now  # type: ignore[misc]
        if self.end == "throw":
            raise RuntimeError("of the handler")
        if self.end == "wait":
            yield self.finished.is_set
        if self.end == "extended":
            first = self.key.hold.expires_at
            yield lambda: self.key.hold.expires_at > first + self.ttl / 2

    def stream(self) -> Iterator[bytes]:
        for step in self.steps():
            if isinstance(step, bytes):
                yield step
            else:
                eventually("the next step", step)

    async def stream_async(self) -> AsyncIterator[bytes]:
        for step in self.steps():
            if isinstance(step, bytes):
                yield step
                continue
            while not step():
                await asyncio.sleep(0.01)


def _fastapi(options: dict[str, Any], work: Work) -> Any:
    app = fastapi.FastAPI()
    app.add_middleware(latchkey.fastapi.HoldMiddleware)
    app.add_exception_handler(latchkey.fastapi.Rejected, latchkey.fastapi.answer_rejected)
    verify = latchkey.fastapi.Verify(**options)

    @app.api_route("/work", methods=["GET", "HEAD"])
    async def route(key: Any = fastapi.Depends(verify)) -> fastapi.Response:  # noqa: B008
        if work.begin(key):
            while not work.finished.is_set():
                await asyncio.sleep(0.01)
        if work.is_empty:
            return fastapi.Response(status_code=work.status)
        return fastapi.responses.StreamingResponse(work.stream_async(), work.status)

    return app


def _flask(options: dict[str, Any], work: Work, *, is_protected: bool = False) -> Any:
    app = flask.Flask(__name__)
    guard = latchkey.flask.verify(**options)

    def view() -> flask.Response:
        if work.begin(flask.g.get("latchkey")):
            eventually("the end", work.finished.is_set)
        return flask.Response(b"" if work.is_empty else work.stream(), work.status)

    if is_protected:
        guard.protect(app)
    app.add_url_rule("/work", view_func=view if is_protected else guard(view))
    return app


def _django(options: dict[str, Any], work: Work) -> Any:
    @latchkey.django.verify(**options)
    def view(request: HttpRequest) -> Any:
        if work.begin(getattr(request, "latchkey", None)):
            eventually("the end", work.finished.is_set)
        if work.is_empty:
            return HttpResponse(status=work.status)
        return StreamingHttpResponse(work.stream(), status=work.status)

    return _django_app(view, WSGIHandler)


def _django_async(options: dict[str, Any], work: Work) -> Any:
    @latchkey.django.verify(**options)
    async def view(request: HttpRequest) -> Any:
        if work.begin(getattr(request, "latchkey", None)):
            while not work.finished.is_set():
                await asyncio.sleep(0.01)
        if work.is_empty:
            return HttpResponse(status=work.status)
        answer: Any = StreamingHttpResponse
        return answer(work.stream_async(), status=work.status)

    return _django_app(view, ASGIHandler)


def _django_app(view: Any, handler: Any) -> Any:
    async def answer_async(request: HttpRequest, id: int) -> Any:
        return await view(request)

    def answer(request: HttpRequest, id: int) -> Any:
        return view(request)

    test_middleware.django_view = answer_async if handler is ASGIHandler else answer
    return handler()


FRAMEWORKS: dict[str, tuple[Callable[..., Any], bool]] = {
    "FastAPI": (_fastapi, True),
    "Flask": (_flask, False),
    "Flask application": (lambda *args: _flask(*args, is_protected=True), False),
    "Django": (_django, False),
    "Django async": (_django_async, True),
}


class Service:
    """The network to the service, with faults of the calls that end a hold."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.faults = list(scenario.get("faults", []))
        self.is_away = scenario.get("network") == "away"
        self.ends: list[dict[str, Any]] = []

    def before(self, request: httpx.Request) -> httpx.Response | None:
        if self.is_away:
            raise httpx.ConnectError("away")
        fault = None
        if request.url.path.endswith(("settleHold", "releaseHold")):
            self.ends.append(json.loads(request.content))
            fault = self.faults.pop(0) if self.faults else None
        if fault == "away":
            raise httpx.ConnectError("away")
        request.extensions["lost"] = fault == "lost"
        if not isinstance(fault, int):
            return None
        error = {"type": "/errors/planted", "detail": "planted", "status": fault}
        return httpx.Response(fault, json={"meta": {"requestId": "req_1"}, "error": error}, request=request)


class SyncTransport(httpx.HTTPTransport):
    def __init__(self, service: Service) -> None:
        super().__init__(limits=httpx.Limits(max_keepalive_connections=0))
        self._service = service

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        planted = self._service.before(request)
        if planted is not None:
            return planted
        response = super().handle_request(request)
        if request.extensions["lost"]:
            response.read()
            raise httpx.ReadError("lost")
        return response


class AsyncTransport(httpx.AsyncHTTPTransport):
    def __init__(self, service: Service) -> None:
        super().__init__(limits=httpx.Limits(max_keepalive_connections=0))
        self._service = service

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        planted = self._service.before(request)
        if planted is not None:
            return planted
        response = await super().handle_async_request(request)
        if request.extensions["lost"]:
            await response.aread()
            raise httpx.ReadError("lost")
        return response


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("scenario", load("hold-scenarios.json"), ids=lambda scenario: scenario["name"])
def test_scenario(scenario: dict[str, Any], framework: str, servers: Servers, api_id: str) -> None:
    make, is_asgi = FRAMEWORKS[framework]
    if "hangUp" in scenario and not is_asgi:
        pytest.skip("WSGI notices at the next write: see the test of it")
    service = Service(scenario)
    errors: list[Exception] = []
    answers: list[Any] = []
    settle: Any = scenario.get("settle")

    def settled(answer: Any, _request: Any) -> Any:
        answers.append(answer)
        if settle == "throw":
            raise RuntimeError("of the function")
        return {"credits": settle["credits"] if "credits" in settle else settle["perByte"] * answer.bytes}

    with Latchkey(URL, ROOT_KEY) as administrator:
        created = administrator.keys.create_key(api_id=api_id, credits={"remaining": 100}).data
        client: Any = (
            AsyncLatchkey(URL, ROOT_KEY, timeout=10, http_client=httpx.AsyncClient(transport=AsyncTransport(service)))
            if framework == "FastAPI"
            else Latchkey(URL, ROOT_KEY, timeout=10, http_client=httpx.Client(transport=SyncTransport(service)))
        )
        work = Work(scenario)
        options: dict[str, Any] = {
            "latchkey": client,
            "api_id": api_id,
            "cost": scenario.get("cost", 40),
            "fail_open": scenario.get("failOpen", False),
            "on_error": lambda error, _request: errors.append(error),
            "hold": {"ttl": work.ttl, **({"settle": settled} if settle else {})},
        }
        if "limits" in scenario:
            options["limits"] = scenario["limits"]
        servers.app = make(options, work)
        path = {"Django": "/documents/1", "Django async": "/async/documents/1"}.get(framework, "/work")
        try:
            _exchange(servers.port(is_asgi), path, scenario, work, created.key.reveal())
            ends = scenario.get("ends", 0)
            eventually("the end of the hold", lambda: bool(errors) or len(service.ends) >= ends)
            _check(scenario, administrator, created.key_id)
        finally:
            work.finished.set()
    assert len(errors) == scenario.get("errors", 0), errors
    if "unsettled" in scenario:
        assert isinstance(errors[0], UnsettledHold)
        assert errors[0].settlement == scenario["unsettled"]
    if "ends" in scenario:
        assert len(service.ends) == scenario["ends"]
        assert all(end == service.ends[0] for end in service.ends)
    if "settlement" in scenario:
        assert {name: value for name, value in service.ends[0].items() if name != "holdId"} == scenario["settlement"]
    for member, expected in scenario.get("answer", {}).items():
        assert getattr(answers[0], snake(member)) == expected, member
    if scenario.get("state") == "settled" and work.report is not None:
        assert work.key.hold.report(credits=1) is False


def _exchange(port: int, path: str, scenario: dict[str, Any], work: Work, key: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_DEADLINE)
    try:
        connection.request(scenario.get("method", "GET"), path, headers={"Authorization": f"Bearer {key}"})
        hang_up = scenario.get("hangUp")
        if hang_up == "before":
            assert work.begun.wait(_DEADLINE)
            return
        status, is_broken = None, False
        try:
            response = connection.getresponse()
            status = response.status
            while data := response.read1(65_536):
                work.received += len(data)
                if hang_up == "within" and work.received == len(b"".join(work.chunks)):
                    response.close()
                    return
        except (http.client.HTTPException, OSError):
            is_broken = True
        if work.end == "throw":
            assert status == 500 if not work.chunks else is_broken or status == 200
        else:
            assert (status, is_broken) == (scenario.get("status", work.status), False)
    finally:
        if connection.sock is not None:
            connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()


def _check(scenario: dict[str, Any], administrator: Latchkey, key_id: str) -> None:
    state = scenario.get("state")

    def states() -> list[str]:
        return [hold.state for hold in administrator.holds.list_holds(key_id=key_id).data]

    if state in ("settled", "released"):
        eventually(f"the state {state}", lambda: any(each != "open" for each in states()))
    assert states() == ([] if state is None else [state])
    key_credits = administrator.keys.get_key(key_id=key_id).data.credits
    assert key_credits is not None
    assert key_credits.remaining == scenario["credits"]


@pytest.mark.parametrize("framework", ["Flask", "Django"])
def test_hanging_up_under_wsgi_is_not_free(framework: str, servers: Servers, api_id: str) -> None:
    """The server notices at one of the next writes."""
    scenario = {"handler": {"chunks": ["hello"], "end": "wait"}, "hangUp": "within"}
    work = Work(scenario)

    def stream() -> Iterator[bytes]:
        yield b"hello"
        while True:
            yield bytes(65_536)

    work.stream = stream  # type: ignore[method-assign]
    answers: list[Any] = []

    def settle(answer: Any, _request: Any) -> Any:
        answers.append(answer)
        return {"credits": 30}

    with Latchkey(URL, ROOT_KEY) as client:
        created = client.keys.create_key(api_id=api_id, credits={"remaining": 100}).data
        make, is_asgi = FRAMEWORKS[framework]
        options = {"latchkey": client, "api_id": api_id, "cost": 40, "hold": {"settle": settle}}
        servers.app = make(options, work)
        path = "/documents/1" if framework == "Django" else "/work"
        work.chunks = [b"hello"]
        connection = http.client.HTTPConnection("127.0.0.1", servers.port(is_asgi), timeout=_DEADLINE)
        connection.request("GET", path, headers={"Authorization": f"Bearer {created.key.reveal()}"})
        connection.getresponse().read1(5)
        connection.close()
        _check({"state": "settled", "credits": 70}, client, created.key_id)
    assert not answers[0].complete
    assert answers[0].bytes >= 5


def test_fastapi_needs_its_middleware(api_id: str) -> None:
    app = fastapi.FastAPI()
    verify = latchkey.fastapi.Verify(api_id=api_id, latchkey=AsyncLatchkey(URL, ROOT_KEY), hold={})

    @app.get("/work")
    async def route(key: Any = fastapi.Depends(verify)) -> None:  # noqa: B008
        raise AssertionError("it was called")

    async def ask() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app.test") as client:
            await client.get("/work")

    with pytest.raises(RuntimeError, match="add_middleware"):
        asyncio.run(ask())


@pytest.mark.parametrize("make", [latchkey.flask.verify, latchkey.django.verify])
def test_times_that_cannot_be_used_are_errors(make: Any) -> None:
    with Latchkey("http://service.test") as client:
        for hold, name in (
            ({"ttl": 999}, "ttl"),
            ({"ttl": 1_500.5}, "ttl"),
            ({"ttl": 2_000, "lifetime_max": 1_999}, "lifetime_max"),
            ({"ttls": 2_000}, "ttls"),
        ):
            with pytest.raises(ValueError, match=rf"`hold\.{name}`"):
                make(api_id="a", latchkey=client, hold=hold)


Run = Callable[..., Any]


def _with_hold(is_async: bool, work: Callable[[OpenHold], Any], transport: Any = None, **options: Any) -> Any:
    async def run_async() -> Any:
        async def work_async(hold: OpenHold) -> Any:
            return work(hold)

        http_client = None if transport is None else httpx.AsyncClient(transport=transport)
        async with AsyncLatchkey(URL, ROOT_KEY, http_client=http_client) as client:
            return await client.with_hold(work_async, **options)

    if is_async:
        return asyncio.run(run_async())
    http_client = None if transport is None else httpx.Client(transport=transport)
    with Latchkey(URL, ROOT_KEY, http_client=http_client) as client:
        return client.with_hold(work, **options)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_with_hold(is_async: bool, api_id: str) -> None:
    with Latchkey(URL, ROOT_KEY) as administrator:
        created = administrator.keys.create_key(api_id=api_id, credits={"remaining": 100}).data

        def left() -> int:
            found = administrator.keys.get_key(key_id=created.key_id).data.credits
            assert found is not None
            return found.remaining

        options: dict[str, Any] = {"key": created.key, "credits": {"cost": 40}, "hold": {"ttl": 30_000}}
        held = _with_hold(is_async, lambda hold: hold.report(credits=7), **options)
        assert (held.valid, held.result, held.settled.charged, left()) == (True, True, 7, 93)
        held = _with_hold(is_async, lambda _: 5, settle=lambda result: {"credits": result}, **options)
        assert (held.result, held.settled.charged, left()) == (5, 5, 88)
        assert _with_hold(is_async, lambda _: None, **options).settled.charged == 40

        def fail(hold: OpenHold) -> None:
            raise RuntimeError("of the work")

        def fail_late(hold: OpenHold) -> None:
            hold.report(credits=8)
            fail(hold)

        for work, credits in ((fail, 48), (fail_late, 40)):
            with pytest.raises(RuntimeError, match="of the work"):
                _with_hold(is_async, work, **options)
            assert left() == credits
        options["credits"] = {"cost": 41}
        held = _with_hold(is_async, fail, **options)
        assert (held.valid, held.verified.code, held.result, left()) == (False, "USAGE_EXCEEDED", None, 40)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_settlement_is_tried_8_times(is_async: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hold, "_WAIT_FIRST", 0.001)
    monkeypatch.setattr(_hold, "_WAIT_MAX", 0.01)
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("verifyKey"):
            hold = {"holdId": "hold_1", "expiresAt": 1}
            data = {"valid": True, "code": "VALID", "keyId": "key_1", "apiId": "api_1", "hold": hold}
            return httpx.Response(200, json={"meta": {"requestId": "req_1"}, "data": data})
        sent.append(json.loads(request.content))
        error = {"type": "/errors/planted", "detail": "planted", "status": 503}
        return httpx.Response(503, json={"meta": {"requestId": "req_1"}, "error": error})

    errors: list[Exception] = []
    held = _with_hold(
        is_async,
        lambda hold: hold.report(credits=7),
        httpx.MockTransport(answer),
        key="a",
        on_error=errors.append,
    )
    assert (held.result, held.settled) == (True, None)
    assert sent == [{"holdId": "hold_1", "credits": 7}] * 8
    (error,) = errors
    assert isinstance(error, UnsettledHold)
    assert (error.hold_id, error.settlement) == ("hold_1", {"credits": 7})
    assert isinstance(error.__cause__, LatchkeyError)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_function_that_never_returns_charges_what_was_held(
    is_async: bool, api_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_hold, "SETTLE_TIMEOUT", 0.05)
    forever = threading.Event()

    async def wait_async(_: object) -> Any:
        await asyncio.Event().wait()

    def wait(_: object) -> Any:
        forever.wait(_DEADLINE)

    errors: list[Exception] = []
    with Latchkey(URL, ROOT_KEY) as administrator:
        key = administrator.keys.create_key(api_id=api_id, credits={"remaining": 100}).data.key
        settle = wait_async if is_async else wait
        held = _with_hold(is_async, lambda _: 1, key=key, credits={"cost": 40}, settle=settle, on_error=errors.append)
    forever.set()
    assert held.settled.charged == 40
    assert "took more than" in str(errors[0])


def test_a_hold_is_extended_until_its_longest_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    times = _hold.checked_times({"ttl": 9_000, "lifetime_max": 20_000})
    made = VerifyKeyOutputHold(hold_id="hold_1", expires_at=1)
    state = _hold.HoldState(made, 40, times, lambda _: None)
    assert state.extension_wait() == 3
    asked: list[int] = []

    def is_last() -> bool:
        steps = state.extension()
        call = next(steps, None)
        if call is None:
            return True
        asked.append(call.arguments["ttl"])  # type: ignore[union-attr]
        with pytest.raises(StopIteration, match="True"):
            steps.send(made)
        return False

    for _ in range(6):
        now += 3
        assert not is_last()
    now += 3
    assert is_last()
    assert asked == [9_000, 9_000, 9_000, 8_000, 5_000, 2_000]
