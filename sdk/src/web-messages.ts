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

/** The answer of the handler with further headers, before those that are there: the outer middleware is the first. */
export function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  const added = Object.entries(headers);
  // The answer to an upgrade cannot be copied.
  if (added.length === 0 || response.status === 101) return response;
  // The headers of some answers cannot be changed.
  const copy = new Response(response.body, response);
  for (const [name, value] of added) {
    const inner = copy.headers.get(name);
    copy.headers.set(name, inner === null ? value : `${value}, ${inner}`);
  }
  return copy;
}
