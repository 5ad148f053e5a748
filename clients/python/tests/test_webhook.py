"""Messages to webhooks, by the shared list. `sdk/test/webhook.test.ts` says what its members mean."""

from __future__ import annotations

from typing import Any

import pytest
from scenarios import has_members, load

from latchkey import Secret, WebhookError, verify_webhook
from latchkey.types import KeyCreatedEvent

SCENARIOS = load("webhook-scenarios.json")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
@pytest.mark.parametrize("encode", [str, str.encode], ids=["text", "bytes"])
def test_a_message(scenario: dict[str, Any], encode: Any) -> None:
    def verify() -> object:
        now = scenario["now"]
        return verify_webhook(encode(scenario["body"]), scenario["headers"], scenario["secrets"], now=lambda: now)

    if scenario["result"] == "accepted":
        assert has_members(verify(), scenario["event"])
        return
    with pytest.raises(WebhookError if scenario["result"] == "rejected" else ValueError):
        verify()


def test_the_class_of_the_data_is_that_of_the_type() -> None:
    scenario = SCENARIOS[0]
    event = verify_webhook(
        scenario["body"], scenario["headers"], Secret(scenario["secrets"][0]), now=lambda: scenario["now"]
    )
    assert isinstance(event.data, KeyCreatedEvent)
    assert (event.data.key_id, event.data.expires) == ("key_1", None)
    with pytest.raises(WebhookError, match="old"):
        verify_webhook(scenario["body"], scenario["headers"], scenario["secrets"], now=lambda: 2_000_000_000)
