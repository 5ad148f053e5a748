"""A circuit breaker: a service that hangs costs a few calls their time-out, and not every call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

TIMEOUTS_MAX = 5
PROBE_WAIT = 1.0

Outcome = Literal["answered", "timeout", "unknown"]

_ORDINARY = 0


class Breaker:
    """Says whether an attempt may be sent. Threads can share one.

    It opens when several attempts in a row got no answer in time. Then one attempt at a time is a probe. Any answer
    closes it.
    """

    def __init__(self, is_on: bool, now: Callable[[], float] = time.monotonic) -> None:
        self._is_on = is_on
        self._now = now
        self._lock = threading.Lock()
        self._timeouts = 0
        self._probe_at = 0.0
        self._probe: int | None = None
        self._probes = 0

    @property
    def is_open(self) -> bool:
        return self._timeouts >= TIMEOUTS_MAX

    def allows(self) -> bool:
        """Whether `admit` would return a permit."""
        return not self.is_open or (self._probe is None and self._now() >= self._probe_at)

    def admit(self) -> int | None:
        """A permit for one attempt, whose end must be reported with `end`; None if it must not be sent."""
        with self._lock:
            if not self.is_open:
                return _ORDINARY
            if not self.allows():
                return None
            self._probes += 1
            self._probe = self._probes
            return self._probe

    def end(self, permit: int, outcome: Outcome) -> None:
        """Reports how an attempt ended. `unknown` says nothing about the service."""
        if not self._is_on:
            return
        with self._lock:
            is_probe = permit == self._probe
            if is_probe:
                self._probe = None
            if outcome == "answered":
                self._timeouts = 0
            elif outcome == "timeout":
                self._timeouts += 1
            if self.is_open and (is_probe or (outcome == "timeout" and self._timeouts == TIMEOUTS_MAX)):
                self._probe_at = self._now() + PROBE_WAIT
