import type { EventData } from "./operations.ts";
import { Secret } from "./secret.ts";
import { shareClass } from "./share-class.ts";

const PREFIX = "whsec_";
const TOLERANCE = 300_000;
/** The service sends two while a secret rotates. */
const SIGNATURES_MAX = 16;
/** As the specification says. */
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;

/** `CryptoKey`, which is a global name only where the types of browsers are. */
type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** An event that a webhook gets. `type` narrows `data`. A newer service can send a type that is not in this list. */
export type WebhookEvent = { [Type in keyof EventData]: WebhookEventOf<Type> }[keyof EventData];

interface WebhookEventOf<Type extends keyof EventData> {
  /** The same in every delivery of the event. */
  readonly id: string;
  readonly type: Type;
  /** The version of the schema of `data`. */
  readonly version: number;
  /** When it happened, in the form of ISO 8601. */
  readonly timestamp: string;
  readonly data: EventData[Type];
}

/** The headers of a request: of the fetch standard, or of node:http. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** A message that is not from the service, or too old. Answer it with 401. */
export class WebhookError extends Error {
  static {
    shareClass(WebhookError, "WebhookError");
  }

  override readonly name = "WebhookError";
}

/**
 * The event of a message to a webhook, after its signature and its time were checked as Standard Webhooks says. A message
 * may be up to 5 minutes old.
 *
 * ```ts
 * const event = await verifyWebhook(await request.text(), request.headers, process.env.WEBHOOK_SECRET!);
 * if (event.type === "key.created") console.log(event.data.keyId);
 * ```
 *
 * @param body the body as it was received: parsing and printing it again changes its bytes.
 * @param secret the secret of the webhook, or several: a message with a signature by one of them is accepted.
 * @throws {WebhookError} for a message that is not from the service, was changed, or is too old.
 * @throws {TypeError} for a secret that cannot be one.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | Secret | readonly (string | Secret)[],
  { now = Date.now }: { readonly now?: () => number } = {},
): Promise<WebhookEvent> {
  const given = Array.isArray(secret) ? (secret as readonly (string | Secret)[]) : [secret as string | Secret];
  if (given.length === 0) throw new TypeError("The secret of the webhook is missing.");
  const keys = await Promise.all(given.map(keyOf));
  const read = headersOf(headers);
  const [id, timestamp, signature] = ["id", "timestamp", "signature"].map((name) => read(`webhook-${name}`));
  if (!id || !timestamp || !signature) throw new WebhookError("The message has no signature.");
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookError("The time of the message is not a number.");
  if (Math.abs(now() - Number(timestamp) * 1_000) > TOLERANCE) {
    throw new WebhookError("The message is more than 5 minutes old, or the clock of one side is wrong.");
  }
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  const signatures = signature
    .split(" ", SIGNATURES_MAX)
    .map((each) => (each.startsWith("v1,") ? bytesOf(each.slice(3)) : undefined))
    .filter((each) => each !== undefined);
  // `verify` compares in constant time.
  const verified = await Promise.all(
    keys.flatMap((key) => signatures.map((each) => crypto.subtle.verify("HMAC", key, each, signed))),
  );
  if (!verified.includes(true)) throw new WebhookError("No signature of the message is by the secret of the webhook.");
  return eventOf(new TextDecoder().decode(bytes));
}

function headersOf(headers: WebhookHeaders): (name: string) => string | undefined {
  if (headers instanceof Headers) return (name) => headers.get(name) ?? undefined;
  const lowered = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => {
    const value = lowered.get(name);
    return typeof value === "string" ? value : undefined;
  };
}

async function keyOf(secret: string | Secret): Promise<Key> {
  const text: unknown = secret instanceof Secret ? secret.reveal() : secret;
  const bytes = typeof text === "string" ? bytesOf(text.trim().replace(PREFIX, "")) : undefined;
  if (!bytes || bytes.length < SECRET_BYTES_MIN || bytes.length > SECRET_BYTES_MAX) {
    throw new TypeError(`The secret of the webhook must be \`${PREFIX}\` and Base64, as createWebhook returned it.`);
  }
  return await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64) || base64.length % 4 !== 0) return undefined;
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function eventOf(text: string): WebhookEvent {
  try {
    const event = JSON.parse(text);
    if (typeof event.id === "string" && typeof event.type === "string" && Object(event.data) === event.data)
      return event;
  } catch {
    // Below.
  }
  throw new WebhookError("The message is not an event.");
}
