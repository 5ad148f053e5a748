"""Keys and budgets of Latchkey for LiteLLM's proxy: requests hold what they may cost, and pay what they did cost."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, Final

from fastapi import Request
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy import proxy_server
from litellm.proxy._types import ProxyException, UserAPIKeyAuth
from litellm.proxy.common_utils.http_parsing_utils import read_request_body
from litellm.proxy.spend_tracking.budget_reservation import count_request_input_tokens, estimate_request_max_cost

from latchkey import AsyncLatchkey, LatchkeyError
from latchkey.types import VerifyKeyInputHold, VerifyKeyOutput

# LiteLLM can price these before they run. All other routes, those of administrators too, are closed to keys.
PAID: Final = ("/chat/completions", "/completions", "/embeddings")
FREE: Final = ("/models",)

# Not shorter than `request_timeout` in config.yaml. If LiteLLM reports nothing until then, because it was killed for
# example, all that was held is charged: `release` would give it back instead. A later report corrects both.
HOLD: Final[VerifyKeyInputHold] = {"ttl": 600_000, "on_expiry": "charge"}
HOLD_ID: Final = "latchkey_hold_id"

STATUSES: Final = {"USAGE_EXCEEDED": 402, "RATE_LIMITED": 429, "FORBIDDEN": 403, "INSUFFICIENT_PERMISSIONS": 403}

latchkey: Final = AsyncLatchkey()  # LATCHKEY_URL and LATCHKEY_ROOT_KEY


async def user_api_key_auth(request: Request, api_key: str) -> UserAPIKeyAuth:
    """Verifies a key, with a hold for what the request may cost. LiteLLM calls it for each request (`custom_auth`)."""
    route = request.url.path.removeprefix("/v1")
    if route in PAID:
        cost = await estimate(request)
        data = await verify(api_key, cost=cost, hold=HOLD)
    elif route in FREE:
        # Keys with `concurrency` are verified with a hold only. LiteLLM does not report this request: it expires.
        data = await verify(api_key, cost=0, hold={"ttl": 1_000})
    else:
        raise refusal(403, "This route is not available.")
    metadata = {HOLD_ID: data.hold.hold_id} if data.hold else {}
    # `api_key` is the name under which LiteLLM logs the key. The key string stays out of its logs.
    return UserAPIKeyAuth(api_key=data.key_id, key_alias=data.name, metadata=metadata)


class SettleHolds(CustomLogger):
    """Settles the hold of each request. Its name in config.yaml is that of the instance below."""

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: object, start_time: datetime, end_time: datetime
    ) -> None:
        """An answer is complete, or its client hung up in the middle of it: LiteLLM has priced what there is."""
        hold_id = kwargs["litellm_params"]["metadata"].get("user_api_key_metadata", {}).get(HOLD_ID)
        if hold_id:
            await settle(hold_id, kwargs["response_cost"], kwargs["model"])

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: UserAPIKeyAuth,
        traceback_str: str | None = None,
    ) -> None:
        """A request failed, after all retries and fallbacks. `async_log_failure_event` is called for each of those."""
        hold_id = user_api_key_dict.metadata.get(HOLD_ID)
        if hold_id and request_data.get("response_cost"):  # Of a stream that had begun.
            await settle(hold_id, request_data["response_cost"], request_data["model"])
        elif hold_id:
            await latchkey.holds.release_hold(hold_id=hold_id)


settle_holds: Final = SettleHolds()


async def estimate(request: Request) -> int:
    """The most that a request may cost, in micro-dollars, by the prices and the tokenizers of LiteLLM."""
    body = await read_request_body(request)
    if "," in str(body.get("model")) or "fallbacks" in body:
        raise refusal(400, "A request has one model.")
    route, router = request.url.path, proxy_server.llm_router
    tokens = await count_request_input_tokens(body, route, router)
    cost = estimate_request_max_cost(body, route, router, tokens)
    if cost is None or cost < 0:
        raise refusal(400, "This model has no price, or the request asks for no number of tokens.")
    return micro_dollars(cost)


async def verify(api_key: str, *, cost: int, hold: VerifyKeyInputHold) -> VerifyKeyOutput:
    if not api_key:
        raise refusal(401, "The API key is missing.")
    try:
        data = (await latchkey.keys.verify_key(key=api_key, credits={"cost": cost}, hold=hold)).data
    except LatchkeyError as error:
        # 400: no key looks like that, or nothing costs that much. 429: too many holds are open.
        raise refusal(error.status if error.status in (400, 429) else 503, "The key was not checked.") from error
    if not data.valid:
        wait = [] if data.retry_after is None else [("retry-after", str(math.ceil(data.retry_after / 1_000)))]
        raise refusal(STATUSES.get(data.code, 401), f"The API key was rejected: {data.code}.", dict(wait))
    return data


async def settle(hold_id: str, cost: float, model: str) -> None:
    await latchkey.holds.settle_hold(hold_id=hold_id, credits=micro_dollars(cost), tags=[f"model={model}"])


def micro_dollars(dollars: float) -> int:
    """Rounds up, but not the error of the floating point."""
    return math.ceil(round(dollars * 1_000_000, 3))


def refusal(status: int, message: str, headers: dict[str, str] | None = None) -> ProxyException:
    return ProxyException(message=message, type="latchkey", param=None, code=status, headers=headers)
