import type { HeldAnswer } from "./held-answer.ts";
import { NO_HEADERS } from "./limit-headers.ts";
import type { RequestReader } from "./middleware.ts";
import { type RejectionAnswer, textOf } from "./rejection.ts";

/** Reads requests of the fetch standard. */
export const webReader: RequestReader<Request> = {
  method: ({ method }) => method,
  values: ({ headers }, header) => valuesIn(headers, header),
};

/** The values of a header, joined by commas. */
export function valuesIn(headers: Headers, header: string): string[] {
  const value = headers.get(header);
  return value === null ? [] : [value];
}

/** The answer to a request that is rejected. */
export function rejected(rejection: RejectionAnswer): Response {
  return new Response(textOf(rejection), { status: rejection.status, headers: rejection.headers });
}

/** The member of an answer to which headers were added. */
const ADDED = Symbol("@latchkey/sdk added");

interface Added {
  /** The request that got them. */
  readonly request: object;
  /** What the handler had set, by the names of the headers. */
  readonly before: Readonly<Record<string, string | null>>;
}

type Marked = Response & { [ADDED]?: Added };

/**
 * The answer of the handler with further headers, before those that are there: the outer middleware is the first. It is changed
 * itself, because a copy takes as long as several verifications. One that cannot be changed is copied, and so is one that the handler
 * gives to several requests: each has its own limits.
 */
export function withHeaders(response: Response, headers: Readonly<Record<string, string>>, request: object): Response {
  // The answer to an upgrade cannot be copied.
  if (headers === NO_HEADERS || response.status === 101) return response;
  const added = (response as Marked)[ADDED];
  if (added === undefined || added.request === request) {
    try {
      addHeaders(response, headers, request);
      return response;
    } catch {
      // As those of answers that `fetch` gets.
    }
  }
  const copy = new Response(response.body, response);
  for (const name in added?.before) {
    const before = added.before[name];
    if (before == null) copy.headers.delete(name);
    else copy.headers.set(name, before);
  }
  addHeaders(copy, headers, request);
  return copy;
}

function addHeaders(response: Marked, headers: Readonly<Record<string, string>>, request: object): void {
  const before: Record<string, string | null> = {};
  for (const name in headers) before[name] = response.headers.get(name);
  response[ADDED] ??= { request, before };
  for (const name in headers) {
    const inner = before[name];
    response.headers.set(name, inner == null ? (headers[name] ?? "") : `${headers[name]}, ${inner}`);
  }
}

/** Runs a handler, and ends the hold of its answer when that has ended. `platform` has arguments such as `ctx` of Workers. */
export async function answered(
  held: HeldAnswer | undefined,
  request: Pick<Request, "signal">,
  platform: readonly unknown[],
  handle: () => Response | Promise<Response>,
): Promise<Response> {
  if (!held) return await handle();
  // Servers make it when it is read, which takes as long as a verification, and Deno prints a notice.
  const { signal } = request;
  for (const each of platform) {
    const { waitUntil } = Object(each) as { waitUntil?: unknown };
    if (typeof waitUntil === "function") waitUntil.call(each, held.done);
  }
  let status = 0;
  const hangUp = () => held.end(false, status);
  signal.addEventListener("abort", hangUp, { once: true });
  if (signal.aborted) {
    hangUp();
    // Nobody gets it.
    return new Response(null, { status: 499 });
  }
  try {
    const response = await handle();
    ({ status } = response);
    return watched(response, held);
  } catch (error) {
    held.end(false, status);
    throw error;
  }
}

/** The answer, with a body that is counted while it is read. */
function watched(response: Response, held: HeldAnswer): Response {
  const { status, body } = response;
  // The answer to an upgrade cannot be copied. The connection that follows is no part of it.
  if (body === null || !held.hasBody || status === 101) {
    held.end(true, status);
    return response;
  }
  const reader = body.getReader();
  const counted = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) {
            held.sent(value.byteLength);
            return controller.enqueue(value);
          }
        } catch (error) {
          held.end(false, status);
          throw error;
        }
        held.end(true, status);
        controller.close();
      },
      async cancel(reason) {
        held.end(false, status);
        await reader.cancel(reason);
      },
    },
    // What nobody reads was not sent.
    { highWaterMark: 0 },
  );
  return new Response(counted, response);
}
