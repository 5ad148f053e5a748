import { closeSync, fsyncSync, renameSync } from "node:fs";
import { hashSecret } from "../../../engine/src/crypto/hash.ts";
import { type Attempts, call, type Endpoint } from "../call.ts";
import { CommandError } from "../output.ts";
import { ProgressLine } from "../progress.ts";
import { createOwnFile, writeFully, writing } from "./own-files.ts";

/** The largest page of `apis.listKeys`. */
const PAGE = 100;
/** Maximum number of keys that are downloaded. */
const KEYS_MAX = 10_000_000;
const retryOptions = { repeatable: "always", retries: 8, waitMax: 120_000 } satisfies Attempts;

/**
 * Downloads the keys of an API from a service with the API of Unkey into a file of JSON Lines, each key as
 * `apis.listKeys` describes it. Key strings are hashed before they are written. The file appears when it is complete.
 *
 * @returns the number of keys.
 * @throws {CommandError} without a complete list.
 */
export async function downloadKeys(file: string, apiId: string, endpoint: Endpoint, timeout: number): Promise<number> {
  const draft = `${file}.draft`;
  const target = createOwnFile(draft);
  let written = 0;
  const progress = new ProgressLine();
  let keys = 0;
  try {
    let cursor: string | undefined;
    do {
      const body = { apiId, limit: PAGE, decrypt: true, ...(cursor !== undefined && { cursor }) };
      const { data, pagination } = await call(endpoint, "apis.listKeys", JSON.stringify(body), {
        ...retryOptions,
        timeout,
      });
      if (!Array.isArray(data)) throw new CommandError(`${endpoint.url} did not answer with a list of keys.`);
      keys += data.length;
      const next = pagination?.hasMore ? pagination.cursor : undefined;
      if (keys > KEYS_MAX || (next !== undefined && (next === cursor || data.length === 0))) {
        throw new CommandError(`${endpoint.url} gives a list of keys that does not end.`);
      }
      const text = data.map((key) => `${JSON.stringify(withHash(key))}\n`).join("");
      writing(draft, () => writeFully(target, text, written));
      written += Buffer.byteLength(text);
      cursor = next;
      progress.show(`${keys.toLocaleString("en")} keys downloaded`);
    } while (cursor !== undefined);
    writing(draft, () => fsyncSync(target));
  } finally {
    closeSync(target);
    progress.clear();
  }
  renameSync(draft, file);
  return keys;
}

/** A key with the hash of its string in the place of the string. */
function withHash({ plaintext, ...key }: Record<string, unknown>): Record<string, unknown> {
  return typeof plaintext === "string" ? { ...key, hash: hashSecret(plaintext) } : key;
}
