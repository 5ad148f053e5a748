"""Threads and times of work that goes on in the background. A forked process gets new ones."""

from __future__ import annotations

import heapq
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

Output = TypeVar("Output")

# So few cancelled tasks are not worth a search for them.
_CANCELLED_MIN = 1_000


def _now_and_in_forks(start: Callable[[], None]) -> None:
    start()
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=start)


class Threads:
    """An executor for calls that wait for the network. They end before the program does."""

    def __init__(self, name: str) -> None:
        self._name = name
        _now_and_in_forks(self._start)

    def _start(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=32, thread_name_prefix=self._name)

    def submit(self, task: Callable[..., Output], *args: Any) -> Future[Output]:
        return self._executor.submit(task, *args)


@dataclass(order=True)
class Scheduled:
    """A task that becomes due."""

    at: float
    order: int
    task: Callable[[], object] | None = field(compare=False)

    def cancel(self) -> None:
        # What the task refers to can be large.
        self.task = None


class Schedule:
    """One thread that starts what is due, because a timer of its own would cost each task a thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._order = itertools.count()
        _now_and_in_forks(self._start)

    def _start(self) -> None:
        self._starting = threading.Lock()
        # Its `put` takes no lock, so that destructors can call `after`.
        self._added: SimpleQueue[Scheduled] = SimpleQueue()
        self._due: list[Scheduled] = []
        self._thread: threading.Thread | None = None

    def after(self, seconds: float, task: Callable[[], object]) -> Scheduled:
        scheduled = Scheduled(time.monotonic() + seconds, next(self._order), task)
        self._added.put(scheduled)
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()
        return scheduled

    def _run(self) -> None:
        size_max = _CANCELLED_MIN
        while True:
            # All of them before one is started, so that they start in the order of their times.
            for _ in range(self._added.qsize()):
                heapq.heappush(self._due, self._added.get())
            if len(self._due) > size_max:
                self._due = [each for each in self._due if each.task is not None]
                heapq.heapify(self._due)
                size_max = 2 * len(self._due) + _CANCELLED_MIN
            wait = self._due[0].at - time.monotonic() if self._due else None
            if wait is None or wait > 0:
                with suppress(Empty):
                    heapq.heappush(self._due, self._added.get(timeout=wait))
                continue
            task = heapq.heappop(self._due).task
            if task is not None:
                task()
