export type {
  Attempt,
  AttemptEnd,
  CallOptions,
  LatchkeyOptions,
  List,
  Page,
  RateLimit,
  Result,
} from "./call.ts";
export { Latchkey } from "./client.ts";
export { type ErrorType, type InputError, LatchkeyError } from "./error.ts";
export {
  type Held,
  type HeldInput,
  type HeldOptions,
  type HoldTimes,
  type OpenHold,
  type Settlement,
  UnsettledHold,
} from "./hold.ts";
export type * from "./operations.ts";
export { Secret } from "./secret.ts";
export { verifyWebhook, WebhookError, type WebhookEvent, type WebhookHeaders } from "./webhook.ts";
