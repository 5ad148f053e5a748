"""A service that accepts connections and does not answer: what the clients wait for, and that they recover."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fastapi
import flask
import httpx
import pytest

import latchkey._call
import latchkey.fastapi
import latchkey.flask
from latchkey import AsyncLatchkey, Latchkey, LatchkeyError
from latchkey._breaker import PROBE_WAIT, TIMEOUTS_MAX, Breaker
from latchkey._call import AsyncCaller
from latchkey._slots import Slots

CALLS = 400
VERIFIED = {"valid": True, "code": "VALID", "keyId": "key_1", "apiId": "api_1"}


class StalledService:
    """Reads requests, and answers them only while it is not stalled."""

    def __init__(self) -> None:
        self.url = ""
        self.requests = 0
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), daemon=True)
        self._thread.start()
        assert self._started.wait(30)

    def answer(self) -> None:
        self._loop.call_soon_threadsafe(self._released.set)

    def close(self) -> None:
        self.answer()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    async def _run(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1_000)
        host, port = server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        self._started.set()
        await self._stop.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"meta": {"requestId": "req_1"}, "data": VERIFIED}).encode()
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().split(b"content-length:")[1].split(b"\r\n")[0]
                await reader.readexactly(int(length))
                self.requests += 1
                await self._released.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass
        finally:
            writer.close()


@pytest.fixture
def service() -> Iterator[StalledService]:
    opened = StalledService()
    try:
        yield opened
    finally:
        opened.close()


def type_of(error: BaseException | None) -> str:
    assert isinstance(error, LatchkeyError), error
    return error.type


class DrippingService:
    """Answers each request with pieces that never end: one, and then one every 20 ms."""

    def __init__(self, first: bytes, piece: bytes) -> None:
        self._pieces = (first, piece)
        self._has_ended = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        self._has_ended.set()
        self._socket.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        first, piece = self._pieces
        with connection, contextlib.suppress(OSError):
            connection.recv(65_536)
            connection.sendall(first)
            while not self._has_ended.wait(0.02):
                connection.sendall(piece)


class TestSlowAnswer:
    """An attempt ends in its time, whatever arrives meanwhile. A test that is not ended by it hangs."""

    @pytest.mark.parametrize(
        ("first", "piece"),
        [
            (b"", b"H"),
            (b"HTTP/1.1 200 OK\r\nX-Long: ", b"a"),
            (b"HTTP/1.1 200 OK\r\n", b"X-More: a\r\n"),
            (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
        ],
        ids=["status", "header", "headers", "hints", "continue", "body", "chunks", "extension"],
    )
    @pytest.mark.parametrize("is_given", [False, True], ids=["own", "given"])
    def test_ends_in_its_time(self, first: bytes, piece: bytes, is_given: bool) -> None:
        service = DrippingService(first, piece)
        try:
            with httpx.Client() as http_client:
                given = http_client if is_given else None
                client = Latchkey(service.url, timeout=0.3, http_client=given)
                with client, pytest.raises(LatchkeyError) as ended:
                    client.keys.verify_key(key="a")
            assert ended.value.type == "timeout"
        finally:
            service.close()


class TestBurst:
    def test_leaves_the_synchronous_client_usable(self, service: StalledService) -> None:
        with (
            Latchkey(service.url, timeout=0.3, circuit_breaker=False) as client,
            ThreadPoolExecutor(CALLS) as pool,
        ):
            calls = [pool.submit(client.keys.verify_key, key="a") for _ in range(CALLS)]
            assert {type_of(each.exception()) for each in calls} == {"timeout"}
            service.answer()
            assert client.keys.verify_key(key="a", options={"timeout": 30}).data.valid

    def test_leaves_the_asynchronous_client_usable(self, service: StalledService) -> None:
        async def run() -> None:
            async with AsyncLatchkey(service.url, timeout=0.3, circuit_breaker=False) as client:
                calls = [client.keys.verify_key(key="a") for _ in range(CALLS)]
                ended = await asyncio.gather(*calls, return_exceptions=True)
                assert {type_of(each) for each in ended if isinstance(each, BaseException)} == {"timeout"}
                service.answer()
                assert (await client.keys.verify_key(key="a", options={"timeout": 30})).data.valid

        asyncio.run(run())

    def test_loses_no_connection_of_a_small_pool(self, service: StalledService) -> None:
        with (
            httpx.Client(limits=httpx.Limits(max_connections=5)) as http_client,
            ThreadPoolExecutor(CALLS) as pool,
        ):
            client = Latchkey(service.url, timeout=0.3, circuit_breaker=False, http_client=http_client)
            calls = [pool.submit(client.keys.verify_key, key="a") for _ in range(CALLS)]
            assert {type_of(each.exception()) for each in calls} == {"timeout"}
            service.answer()
            assert client.keys.verify_key(key="a", options={"timeout": 30}).data.valid

    @pytest.mark.parametrize("is_cancelled", [False, True])
    def test_loses_no_connection_of_a_small_asynchronous_pool(
        self, service: StalledService, is_cancelled: bool
    ) -> None:
        async def run() -> None:
            limits = httpx.Limits(max_connections=5)
            async with httpx.AsyncClient(limits=limits) as http_client:
                client = AsyncLatchkey(service.url, timeout=0.3, circuit_breaker=False, http_client=http_client)
                calls = [asyncio.create_task(client.keys.verify_key(key="a")) for _ in range(CALLS)]
                while is_cancelled and not all(each.done() for each in calls):
                    for each in calls[::7]:
                        each.cancel()
                    await asyncio.sleep(0)
                    calls = [each for each in calls if not each.done()]
                await asyncio.gather(*calls, return_exceptions=True)
                service.answer()
                assert (await client.keys.verify_key(key="a", options={"timeout": 30})).data.valid

        asyncio.run(run())

    def test_waits_its_turn(self) -> None:
        open_now = most = 0

        async def answer(_: httpx.Request) -> httpx.Response:
            nonlocal open_now, most
            open_now += 1
            most = max(most, open_now)
            await asyncio.sleep(0)
            open_now -= 1
            return httpx.Response(200, json={"meta": {"requestId": "req_1"}, "data": VERIFIED})

        async def run() -> None:
            http_client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
            client = AsyncLatchkey("http://keys.test", timeout=30, http_client=http_client)
            await asyncio.gather(*(client.keys.verify_key(key="a") for _ in range(CALLS)))

        asyncio.run(run())
        assert most == 100


def test_a_cancelled_call_leaves_its_attempt_alone_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        ended = asyncio.Event()

        async def never_answer(_: httpx.Request) -> httpx.Response:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError

        monkeypatch.setattr(latchkey._call, "GRACE", 0.01)
        http_client = httpx.AsyncClient(transport=httpx.MockTransport(never_answer))
        client = AsyncLatchkey("http://keys.test", timeout=0.2, http_client=http_client)
        call = asyncio.create_task(client.keys.verify_key(key="a"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not ended.is_set()
        await asyncio.wait_for(ended.wait(), 30)

    asyncio.run(run())


def test_closing_ends_calls_that_are_under_way(service: StalledService) -> None:
    async def run() -> None:
        client = AsyncLatchkey(service.url, timeout=30)
        call = asyncio.create_task(client.keys.verify_key(key="a"))
        while service.requests == 0:
            await asyncio.sleep(0.001)
        await client.close()
        with pytest.raises(LatchkeyError) as caught:
            await call
        assert (caught.value.type, "closed" in caught.value.detail) == ("network_error", True)

    asyncio.run(run())


def test_slots_are_given_in_order_and_none_is_lost() -> None:
    async def run() -> None:
        slots = Slots(1)
        assert await slots.acquire(30)
        assert not await slots.acquire(0.001)
        waiting = [asyncio.create_task(slots.acquire(30)) for _ in range(3)]
        await asyncio.sleep(0)
        slots.release()
        # It has the slot, and does not know yet.
        waiting[0].cancel()
        waiting[1].cancel()
        done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 30)
        assert [isinstance(each, asyncio.CancelledError) for each in done] == [True, True, False]
        slots.release()
        assert await slots.acquire(0)
        assert not slots._waiting

    asyncio.run(run())


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class TestBreaker:
    def opened(self) -> tuple[Breaker, Clock]:
        clock = Clock()
        breaker = Breaker(True, clock)
        for _ in range(TIMEOUTS_MAX):
            permit = breaker.admit()
            assert permit is not None
            breaker.end(permit, "timeout")
        assert breaker.admit() is None
        return breaker, clock

    def test_opens_after_timeouts_in_a_row(self) -> None:
        breaker = Breaker(True, Clock())
        for _ in range(TIMEOUTS_MAX - 1):
            breaker.end(0, "timeout")
        breaker.end(0, "unknown")
        breaker.end(0, "answered")
        for _ in range(TIMEOUTS_MAX - 1):
            breaker.end(0, "timeout")
        assert breaker.admit() == 0
        breaker.end(0, "timeout")
        assert breaker.is_open

    def test_sends_one_probe_at_a_time(self) -> None:
        breaker, clock = self.opened()
        for _ in range(3):
            clock.now += PROBE_WAIT - 0.01
            # What was sent earlier delays no probe.
            breaker.end(0, "timeout")
            assert breaker.admit() is None
            clock.now += 0.01
            probe = breaker.admit()
            assert probe
            clock.now += 10
            assert breaker.admit() is None
            breaker.end(probe, "timeout")
        clock.now += PROBE_WAIT
        probe = breaker.admit()
        assert probe
        breaker.end(probe, "answered")
        assert [breaker.admit(), breaker.admit()] == [0, 0]

    def test_sends_another_probe_if_one_has_no_result(self) -> None:
        breaker, clock = self.opened()
        clock.now += PROBE_WAIT
        probe = breaker.admit()
        assert probe
        breaker.end(probe, "unknown")
        assert breaker.admit() is None
        clock.now += PROBE_WAIT
        assert breaker.admit()

    def test_is_closed_by_any_late_answer(self) -> None:
        breaker, _ = self.opened()
        breaker.end(0, "answered")
        assert breaker.admit() == 0

    def test_can_be_off(self) -> None:
        breaker = Breaker(False, Clock())
        for _ in range(10):
            breaker.end(0, "timeout")
        assert breaker.admit() == 0


def breaker_of(client: Latchkey | AsyncLatchkey) -> Breaker:
    caller: Any = client.keys._caller
    found: Breaker = caller._breaker
    return found


class Hanging:
    """Answers with what `answer` returns; None: a time-out."""

    def __init__(self) -> None:
        self.sent = 0
        self.answer: Callable[[], httpx.Response] | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        if self.answer is None:
            raise httpx.ReadTimeout("", request=request)
        return self.answer()


@pytest.mark.parametrize("kind", [Latchkey, AsyncLatchkey])
class TestOpenCircuit:
    def clients(self, kind: Any, **options: Any) -> tuple[Any, Hanging, Clock, Callable[..., str]]:
        hanging, clock = Hanging(), Clock()
        transport = httpx.MockTransport(hanging)
        http_client = httpx.Client(transport=transport) if kind is Latchkey else httpx.AsyncClient(transport=transport)
        client = kind("http://keys.test", http_client=http_client, retry_wait_max=0, timeout=30, **options)
        breaker_of(client)._now = clock

        def call(name: str = "verify_key", **inputs: Any) -> str:
            try:
                called = getattr(client.keys, name)(**(inputs or {"key": "a"}))
                if isinstance(called, Coroutine):
                    asyncio.run(called)
            except LatchkeyError as error:
                return error.type
            return "answered"

        return client, hanging, clock, call

    def test_answers_at_once_until_a_probe_is_answered(self, kind: Any) -> None:
        _, hanging, clock, call = self.clients(kind)
        assert [call() for _ in range(8)] == ["timeout"] * 5 + ["circuit_open"] * 3
        assert hanging.sent == 5
        clock.now += PROBE_WAIT
        assert [call(), call()] == ["timeout", "circuit_open"]
        clock.now += PROBE_WAIT
        # Any answer shows that the service is there.
        hanging.answer = lambda: httpx.Response(500)
        assert [call(), call()] == ["invalid_answer", "invalid_answer"]
        assert hanging.sent == 8

    def test_of_a_call_that_was_sent_is_a_timeout(self, kind: Any) -> None:
        ends: list[Any] = []
        _, hanging, _, call = self.clients(kind, on_response=ends.append)
        # Three attempts, then two: the second one opens the circuit.
        assert [call("create_key", api_id="a") for _ in range(3)] == ["timeout", "timeout", "circuit_open"]
        assert [hanging.sent, len(ends), ends[-1].retry_in] == [5, 5, None]

    def test_is_not_opened_by_a_service_that_is_away(self, kind: Any) -> None:
        _, hanging, _, call = self.clients(kind)

        def refuse() -> httpx.Response:
            raise httpx.ConnectError("refused")

        hanging.answer = refuse
        assert {call() for _ in range(8)} == {"network_error"}

    def test_can_be_off(self, kind: Any) -> None:
        _, _, _, call = self.clients(kind, circuit_breaker=False)
        assert {call() for _ in range(8)} == {"timeout"}

    def test_lets_a_probe_follow_one_that_failed_in_a_hook(self, kind: Any) -> None:
        fails = False

        def on_request(_: object) -> None:
            if fails:
                raise ZeroDivisionError

        _, hanging, clock, call = self.clients(kind, on_request=on_request)
        for _ in range(5):
            call()
        clock.now += PROBE_WAIT
        fails = True
        with pytest.raises(ZeroDivisionError):
            call()
        clock.now += PROBE_WAIT
        fails = False
        hanging.answer = lambda: httpx.Response(200, json={"meta": {"requestId": "req_1"}, "data": VERIFIED})
        assert call() == "answered"


REQUESTS = 300
THREADS = 8


@pytest.mark.parametrize("fail_open", [False, True])
class TestMiddleware:
    """300 requests while the service hangs: few of them wait for their time-out, and all have the same answer."""

    def check(self, statuses: list[int], service: StalledService, fail_open: bool) -> None:
        assert statuses == [200 if fail_open else 503] * REQUESTS
        # Those that were under way when the fifth timed out.
        assert TIMEOUTS_MAX <= service.requests < TIMEOUTS_MAX + THREADS

    def test_of_flask(self, service: StalledService, fail_open: bool) -> None:
        client = Latchkey(service.url, retry_wait_max=0, timeout=0.3)
        breaker_of(client)._now = Clock()
        app = flask.Flask(__name__)
        verify = latchkey.flask.verify(api_id="api_1", latchkey=client, fail_open=fail_open, on_error=lambda *_: None)
        app.get("/")(verify(lambda: "hello"))

        def request(_: int) -> int:
            return app.test_client().get("/", headers={"Authorization": "Bearer a"}).status_code

        with client, ThreadPoolExecutor(THREADS) as pool:
            self.check(list(pool.map(request, range(REQUESTS))), service, fail_open)

    def test_of_fastapi(self, service: StalledService, fail_open: bool) -> None:
        async def run() -> None:
            client = AsyncLatchkey(service.url, retry_wait_max=0, timeout=0.3)
            breaker_of(client)._now = Clock()
            app = fastapi.FastAPI()
            verify = latchkey.fastapi.Verify(
                api_id="api_1", latchkey=client, fail_open=fail_open, on_error=lambda *_: None
            )

            @app.get("/", dependencies=[fastapi.Depends(verify)])
            async def hello() -> str:
                return "hello"

            async with client, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://a.test") as users:
                turns = asyncio.Semaphore(THREADS)

                async def request() -> int:
                    async with turns:
                        return (await users.get("/", headers={"Authorization": "Bearer a"})).status_code

                statuses = await asyncio.gather(*(request() for _ in range(REQUESTS)))
            self.check(statuses, service, fail_open)

        asyncio.run(run())


def test_the_caller_keeps_nothing_of_calls_that_ended(service: StalledService) -> None:
    async def run() -> None:
        service.answer()
        async with AsyncLatchkey(service.url, timeout=30) as client:
            await asyncio.gather(*(client.keys.verify_key(key="a") for _ in range(10)))
            caller: Any = client.keys._caller
            assert isinstance(caller, AsyncCaller)
            await asyncio.sleep(0)
            (loop,) = caller._loops.values()
            assert (loop.attempts, loop.slots._free) == (set(), 100)

    asyncio.run(run())
