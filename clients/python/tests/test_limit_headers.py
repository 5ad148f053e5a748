from __future__ import annotations

import json
from typing import Any

import pytest
from scenarios import LISTS, arguments

from latchkey._limit_headers import LimitState, limit_headers, limits_of
from latchkey.types import Identity, VerifyKeyOutput, VerifyKeyOutputConcurrencyEntry, VerifyKeyOutputRatelimitsEntry

SHARED = json.loads((LISTS / "limit-headers.json").read_text())


@pytest.mark.parametrize("case", SHARED["cases"], ids=lambda case: case["name"])
def test_headers_are_those_of_all_clients(case: dict[str, Any]) -> None:
    limits = [LimitState(**arguments(limit)) for limit in case["limits"]]
    assert limit_headers(limits, SHARED["now"]) == case["headers"]


def test_limits_of_a_verification_are_those_of_the_key_or_of_the_identity() -> None:
    def limit(from_: Any) -> VerifyKeyOutputRatelimitsEntry:
        return VerifyKeyOutputRatelimitsEntry(
            id="rl_1",
            name="requests",
            limit=9,
            duration=1_000,
            auto_apply=True,
            exceeded=False,
            remaining=8,
            reset=1,
            retry_after=0,
            from_=from_,
        )

    def slots(from_: Any, in_use: int) -> VerifyKeyOutputConcurrencyEntry:
        return VerifyKeyOutputConcurrencyEntry(name="streams", limit=2, in_use=in_use, from_=from_, exceeded=in_use > 2)

    found = limits_of(
        VerifyKeyOutput(
            valid=False,
            code="RATE_LIMITED",
            key_id="key_1",
            identity=Identity(id="id_1", external_id="acme", meta={}, ratelimits=[]),
            ratelimits=[limit(None), limit("identity")],
            concurrency=[slots("key", 3), slots("identity", 1)],
        )
    )
    assert [(each.name, each.partition, each.remaining, each.unit) for each in found] == [
        ("requests", "key_1", 8, None),
        ("requests", "id_1", 8, None),
        ("streams", "key_1", 0, "concurrent-requests"),
        ("streams", "id_1", 1, "concurrent-requests"),
    ]
