import { type PermissionQuery, type PermissionQueryError, parsePermissionQuery } from "../rules/permission-query.ts";

const QUERIES_MAX = 1_000;

/** A cache of parsed permission queries. Applications use few different ones. */
export class PermissionQueries {
  readonly #parsed = new Map<string, PermissionQuery | PermissionQueryError>();

  parse(text: string): PermissionQuery | PermissionQueryError {
    let parsed = this.#parsed.get(text);
    if (parsed === undefined) {
      parsed = parsePermissionQuery(text);
      // Invented queries must not fill the memory. Clearing the cache costs one parse per query.
      if (this.#parsed.size >= QUERIES_MAX) this.#parsed.clear();
      this.#parsed.set(text, parsed);
    }
    return parsed;
  }
}
