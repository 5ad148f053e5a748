/**
 * The checked members of an address. For `validateSearch`: the router would pass on an unchecked value for each member that
 * is missing here, so what is not there is undefined and not left out.
 */
export function optional<Members extends Record<string, unknown>>(
  members: Members,
): { [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  return members as never;
}

/** A text of the address, at most 500 characters long; undefined if it is none. */
export function text(value: unknown): string | undefined {
  // The router reads `?q=123` as a number.
  const found = typeof value === "number" ? String(value) : value;
  return typeof found === "string" && found !== "" ? found.slice(0, 500) : undefined;
}

/** One of these values; undefined if it is none. */
export function oneOf<const Value extends string>(value: unknown, values: readonly Value[]): Value | undefined {
  return values.find((known) => known === value);
}

/** The path of this dashboard to return to after signing in; never one that leads to another origin. */
export function safeReturn(value: unknown): string | undefined {
  if (typeof value !== "string" || !/^\/(?![/\\])/.test(value)) return undefined;
  const url = new URL(value, location.origin);
  if (url.origin !== location.origin || url.pathname === "/sign-in") return undefined;
  return url.pathname + url.search;
}
