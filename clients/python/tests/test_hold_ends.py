"""How holds end when answers and calls end in another way than usual, with a service that notes what ends them."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import django.test
import fastapi
import fastapi.responses
import flask
import httpx
import pytest
import test_middleware
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import SimpleTemplateResponse
from django.test import override_settings
from test_holds import eventually

import latchkey.django
import latchkey.fastapi
import latchkey.flask
from latchkey import AsyncLatchkey, Latchkey, OpenHold, _hold
from latchkey._background import Schedule
from latchkey.types import VerifyKeyOutputHold

_HEADERS = {"Authorization": "Bearer key"}


class Service:
    """Every key is valid."""

    def __init__(self) -> None:
        self.holds = 0
        self.ends: list[tuple[str, dict[str, Any]]] = []
        self.extended: list[str] = []
        self.failures = 0
        """Calls to end a hold that fail from now on."""
        self.verifying = threading.Event()
        self.can_verify = threading.Event()
        self.can_verify.set()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        operation = request.url.path.rsplit("/", 1)[-1].rsplit(".", 1)[-1]
        input = json.loads(request.content)
        data: dict[str, Any] = {"holdId": "hold_1", "expiresAt": 1}
        if operation == "verifyKey":
            self.verifying.set()
            assert self.can_verify.wait(60)
            self.holds += 1
            hold = {"holdId": f"hold_{self.holds}", "expiresAt": 1}
            data = {"valid": True, "code": "VALID", "keyId": "key_1", "apiId": "api_1", "hold": hold}
        elif operation == "extendHold":
            self.extended.append(input["holdId"])
        else:
            if self.failures > 0:
                self.failures -= 1
                error = {"type": "/errors/planted", "detail": "planted", "status": 503}
                return httpx.Response(503, json={"meta": {"requestId": "req_1"}, "error": error})
            self.ends.append((operation, input))
            data |= {"state": "settled", "charged": 0, "uncovered": 0, "budgets": []}
        return httpx.Response(200, json={"meta": {"requestId": "req_1"}, "data": data})

    def ended(self, *operations: str) -> None:
        eventually(f"{operations}, not {self.ends}", lambda: len(self.ends) >= len(operations))
        assert [operation for operation, _ in self.ends] == list(operations)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def client(service: Service) -> Iterator[Latchkey]:
    with httpx.Client(transport=httpx.MockTransport(service)) as http_client:
        yield Latchkey("http://service.test", http_client=http_client)


def client_async(service: Service) -> AsyncLatchkey:
    return AsyncLatchkey("http://service.test", http_client=httpx.AsyncClient(transport=httpx.MockTransport(service)))


def _request() -> HttpRequest:
    return django.test.RequestFactory().get("/", headers=_HEADERS)


class Rendered(SimpleTemplateResponse):
    """A template that is rendered after the middleware of the view."""

    def __init__(self, content: str | None) -> None:
        super().__init__("")
        self._of_template = content

    @property
    def rendered_content(self) -> str:
        if self._of_template is None:
            raise RuntimeError("of the template")
        return self._of_template


def _django(view: Callable[[HttpRequest], Any], **headers: str) -> Any:
    test_middleware.django_view = lambda request, id: view(request)
    return django.test.Client(raise_request_exception=False).get("/documents/1", headers={**_HEADERS, **headers})


def test_django_counts_templates_when_they_are_rendered(
    service: Service, client: Latchkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def settle(answer: Any, _request: HttpRequest) -> Any:
        sizes.append(answer.bytes)
        return {"credits": 7}

    verify = latchkey.django.verify(latchkey=client, api_id="api_1", hold={"settle": settle})
    assert _django(verify(lambda request: Rendered("hello"))).content == b"hello"
    service.ended("settleHold")
    assert sizes == [5]
    # pytest keeps what is logged, with the response in its traceback.
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)
    assert _django(verify(lambda request: Rendered(None))).status_code == 500
    gc.collect()
    service.ended("settleHold", "releaseHold")


def test_django_ends_holds_of_replaced_responses(service: Service, client: Latchkey) -> None:
    view = latchkey.django.verify(latchkey=client, api_id="api_1", hold={})(
        lambda request: HttpResponse(b"hello", headers={"ETag": '"1"'})
    )
    with override_settings(MIDDLEWARE=["django.middleware.http.ConditionalGetMiddleware"]):
        assert _django(view, **{"If-None-Match": '"1"'}).status_code == 304
    service.ended("settleHold")


def test_django_ends_holds_of_dropped_responses(service: Service, client: Latchkey) -> None:
    """As Django drops that of a sync view under ASGI whose end user has hung up."""
    view = latchkey.django.verify(latchkey=client, api_id="api_1", hold={})(
        lambda request: cast(Any, StreamingHttpResponse)(iter([b"hello"]))
    )
    cast(Any, view)(_request())
    # Django makes cycles of references of streams.
    gc.collect()
    service.ended("releaseHold")


def test_django_ends_holds_of_async_streams_that_nobody_read(service: Service, client: Latchkey) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b"hello"

    @latchkey.django.verify(latchkey=client, api_id="api_1", hold={})
    async def view(request: HttpRequest) -> Any:
        return cast(Any, StreamingHttpResponse)(stream())

    response = asyncio.run(view(_request()))
    response.close()
    service.ended("releaseHold")


def test_django_ends_holds_of_verifications_that_nobody_waits_for(service: Service, client: Latchkey) -> None:
    @latchkey.django.verify(latchkey=client, api_id="api_1", hold={})
    async def view(request: HttpRequest) -> HttpResponse:
        raise AssertionError("it was called")

    async def hang_up() -> None:
        service.can_verify.clear()
        asking = asyncio.ensure_future(view(_request()))
        while not service.verifying.is_set():
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(hang_up())
    service.can_verify.set()
    service.ended("releaseHold")


def test_flask_ends_holds_of_replaced_responses(service: Service, client: Latchkey) -> None:
    app = flask.Flask(__name__)
    verify = latchkey.flask.verify(latchkey=client, api_id="api_1", hold={})
    app.add_url_rule("/work", view_func=verify(lambda: "hello"))
    app.after_request(lambda response: flask.Response(b"other"))
    assert app.test_client().get("/work", headers=_HEADERS).data == b"other"
    service.ended("settleHold")


def test_flask_closes_the_body_of_the_view_before_its_hold_ends(service: Service, client: Latchkey) -> None:
    class Body:
        def __iter__(self) -> Iterator[bytes]:
            yield b"hello"
            yield b"world"

        def close(self) -> None:
            assert key.hold.report(credits=3)

    app = flask.Flask(__name__)
    key: Any = None

    def view() -> flask.Response:
        nonlocal key
        key = flask.g.latchkey
        return flask.Response(Body())

    app.add_url_rule("/work", view_func=latchkey.flask.verify(latchkey=client, api_id="api_1", hold={})(view))
    response = app.test_client().get("/work", headers=_HEADERS)
    assert next(response.iter_encoded()) == b"hello"
    response.close()
    service.ended("settleHold")
    assert service.ends[0][1]["credits"] == 3


def test_flask_sends_a_file_after_its_response_was_dropped(service: Service, client: Latchkey, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"hello")
    app = flask.Flask(__name__)
    verify = latchkey.flask.verify(latchkey=client, api_id="api_1", hold={})
    app.add_url_rule("/file", view_func=verify(lambda: flask.send_file(file)))
    environ = app.test_request_context("/file", headers=_HEADERS).request.environ
    body: Any = app.wsgi_app(environ, lambda *_: lambda _: None)
    gc.collect()
    assert b"".join(body) == b"hello"
    body.close()
    service.ended("settleHold")


def _ask_fastapi(app: Any, path: str) -> httpx.Response:
    async def with_extensions(scope: Any, receive: Any, send: Any) -> None:
        scope["extensions"] = {"http.response.pathsend": {}, "http.response.zerocopysend": {}}
        await app(scope, receive, send)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(with_extensions)
        async with httpx.AsyncClient(transport=transport, base_url="http://app.test") as http_client:
            return await http_client.get(path, headers=_HEADERS)

    return asyncio.run(ask())


def test_fastapi_ends_all_holds_of_a_route(service: Service) -> None:
    app = fastapi.FastAPI()
    app.add_middleware(latchkey.fastapi.HoldMiddleware)
    first, second = (
        latchkey.fastapi.Verify(latchkey=client_async(service), api_id=api_id, hold={}) for api_id in ("api_1", "api_2")
    )

    @app.get("/work", dependencies=[fastapi.Depends(first), fastapi.Depends(second)])
    async def work() -> str:
        return "hello"

    assert _ask_fastapi(app, "/work").json() == "hello"
    service.ended("settleHold", "settleHold")
    assert {input["holdId"] for _, input in service.ends} == {"hold_1", "hold_2"}


def test_fastapi_counts_files(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"hello")
    app = fastapi.FastAPI()
    app.add_middleware(latchkey.fastapi.HoldMiddleware)
    verify = latchkey.fastapi.Verify(latchkey=client_async(service), api_id="api_1", hold={})

    @app.get("/file", dependencies=[fastapi.Depends(verify)])
    async def send_file() -> fastapi.Response:
        return fastapi.responses.FileResponse(file)

    assert _ask_fastapi(app, "/file").content == b"hello"
    service.ended("settleHold")


class SlowService:
    """Begins to answer a verification, and goes on when it may."""

    def __init__(self, service: Service) -> None:
        self.verifying = asyncio.Event()
        self.can_verify = asyncio.Event()
        self._service = service
        transport = httpx.MockTransport(self._answer)
        self.client = AsyncLatchkey("http://service.test", http_client=httpx.AsyncClient(transport=transport))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("verifyKey"):
            self.verifying.set()
            await self.can_verify.wait()
        return self._service(request)


def _fastapi_without_an_answer(slow: SlowService) -> Any:
    app = fastapi.FastAPI()
    app.add_middleware(latchkey.fastapi.HoldMiddleware)
    verify = latchkey.fastapi.Verify(latchkey=slow.client, api_id="api_1", hold={})

    @app.get("/work", dependencies=[fastapi.Depends(verify)])
    async def work() -> None:
        raise AssertionError("it was reached")

    return app


@pytest.mark.parametrize("is_fastapi", [True, False], ids=["fastapi", "with_hold"])
def test_a_hold_of_a_verification_that_was_cancelled_is_released(is_fastapi: bool, service: Service) -> None:
    async def work(_: OpenHold) -> None:
        raise AssertionError("it was done")

    async def cancel() -> None:
        slow = SlowService(service)
        transport = httpx.ASGITransport(_fastapi_without_an_answer(slow))
        async with httpx.AsyncClient(transport=transport, base_url="http://app.test") as http_client:
            asking: Any = (
                http_client.get("/work", headers=_HEADERS) if is_fastapi else slow.client.with_hold(work, key="a")
            )
            working = asyncio.ensure_future(asking)
            await slow.verifying.wait()
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
            slow.can_verify.set()
            await _ended_async(service)

    asyncio.run(cancel())
    service.ended("releaseHold")


def test_fastapi_calls_no_handler_if_the_end_user_has_hung_up(service: Service) -> None:
    async def hang_up() -> None:
        slow = SlowService(service)
        messages: list[Any] = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await slow.verifying.wait()
            slow.can_verify.set()
            return {"type": "http.disconnect"}

        async def send(_: Any) -> None:
            pass

        scope = {"type": "http", "method": "GET", "path": "/work", "query_string": b"", "headers": []}
        scope["headers"] = [(b"authorization", b"Bearer key")]
        await _fastapi_without_an_answer(slow)(scope, receive, send)

    asyncio.run(hang_up())
    service.ended("releaseHold")


def test_work_is_charged_if_it_is_cancelled_while_it_is_settled(service: Service) -> None:
    async def cancel() -> None:
        settling, can_settle = asyncio.Event(), asyncio.Event()

        async def work(_: OpenHold) -> int:
            return 7

        async def settle(result: int) -> Any:
            settling.set()
            await can_settle.wait()
            return {"credits": result}

        working = asyncio.ensure_future(client_async(service).with_hold(work, key="a", settle=settle))
        await settling.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        can_settle.set()
        await _ended_async(service)

    asyncio.run(cancel())
    assert service.ends == [("settleHold", {"holdId": "hold_1", "credits": 7})]


def test_work_is_charged_if_it_is_cancelled_twice(service: Service) -> None:
    async def cancel() -> None:
        begun = asyncio.Event()

        async def work(hold: OpenHold) -> None:
            assert hold.report(credits=8)
            begun.set()
            await asyncio.Event().wait()

        service.failures = 1
        working = asyncio.ensure_future(client_async(service).with_hold(work, key="a"))
        await begun.wait()
        working.cancel()
        while service.failures > 0:
            await asyncio.sleep(0.01)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert service.ends == []
        await _ended_async(service)

    asyncio.run(cancel())
    assert service.ends == [("settleHold", {"holdId": "hold_1", "credits": 8})]


async def _ended_async(service: Service) -> None:
    deadline = time.monotonic() + 60
    while service.ends == []:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def _keeper(client: Latchkey, name: str, ttl: int, on_error: Callable[[Exception], None]) -> _hold.HoldKeeper:
    made = VerifyKeyOutputHold(hold_id=name, expires_at=1)
    return _hold.HoldKeeper(client.holds, _hold.HoldState(made, 40, _hold.checked_times({"ttl": ttl}), on_error))


def test_a_hold_that_has_ended_keeps_nothing(service: Service, client: Latchkey) -> None:
    class Body:
        def on_error(self, error: Exception) -> None:
            raise error

    body = Body()
    _keeper(client, "hold_1", 3_600_000, body.on_error).end(None)
    found = weakref.ref(body)
    del body
    gc.collect()
    assert found() is None


def test_settlements_that_are_tried_again_do_not_keep_others_from_being_extended(
    service: Service, client: Latchkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_hold, "_WAIT_MAX", 1.0)
    service.failures = 1_000
    errors: list[Exception] = []
    keepers = [_keeper(client, "settled", 60_000, errors.append) for _ in range(40)]
    for keeper in keepers:
        keeper.end_later(lambda: {"credits": 1})
    other = _keeper(client, "other", 1_000, errors.append)
    eventually("the extension", lambda: "other" in service.extended)
    assert errors == []
    assert len(service.ends) == 0
    service.failures = 0
    other.end(None)
    eventually("the settlements", lambda: len(service.ends) == 41)


def test_a_schedule_starts_what_is_due_in_order_and_forgets_what_was_cancelled() -> None:
    schedule = Schedule("test")
    started: list[int] = []
    for each in (3, 1, 2):
        schedule.after(each / 20, lambda each=each: started.append(each))  # type: ignore[misc]
    for _ in range(20_000):
        schedule.after(3_600, lambda: None).cancel()
    eventually("the tasks", lambda: started == [1, 2, 3])
    assert len(schedule._due) < 5_000


_FORK = """
import os, threading
from latchkey import _hold, django
pools = (_hold._threads, _hold._extending_threads, django._threads)
for pool in pools:
    pool.submit(int).result(10)
due = threading.Event()
_hold.schedule.after(0, due.set)
assert due.wait(10)
inherited = threading.Event()
_hold.schedule.after(0.5, inherited.set)
child = os.fork()
if child == 0:
    try:
        for pool in pools:
            pool.submit(int).result(10)
        due = threading.Event()
        _hold.schedule.after(1, due.set)
        os._exit(0 if due.wait(10) and not inherited.is_set() else 1)
    except BaseException:
        os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert inherited.is_set()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks")
def test_a_forked_process_has_threads_of_its_own() -> None:
    source = Path(__file__).parents[1] / "src"
    subprocess.run([sys.executable, "-c", _FORK], env={"PYTHONPATH": str(source)}, check=True, timeout=60)
