import type { Key } from "@latchkey/sdk";
import { call, type Input } from "../../api/client.ts";
import { explain } from "../../api/explain.ts";
import type { KeysFilter } from "./key-list.ts";
import { keyName } from "./key-state.tsx";

const CONCURRENCY = 4;

/** One change of many keys: a member of `apis.updateKeys`, or their deletion. */
export type BulkChange =
  | { enabled: boolean }
  | { expires: number | null }
  | { addRoles: readonly string[] }
  | { addPermissions: readonly string[] }
  | { addCredits: number }
  | { delete: true };

/** What a change did, and what is left of it. */
export interface BulkReport {
  readonly done: number;
  readonly failed: readonly { name: string; reason: string }[];
  /** The selected keys that were changed. */
  readonly changed?: readonly Key[];
  /** Continues where it was stopped or failed. */
  readonly rest?: BulkWork;
  /** Why it did not go on. */
  readonly error?: unknown;
}

/** Changes many keys. It reports how many it has processed, and stops if it is asked to. */
export type BulkWork = (onCount: (count: number) => void, isStopped: () => boolean) => Promise<BulkReport>;

/** Changes one key. */
export function changeKey(key: Key, change: BulkChange): Promise<unknown> {
  const { keyId } = key;
  if ("delete" in change) return call("keys.deleteKey", { keyId });
  if ("addRoles" in change) return call("keys.addRoles", { keyId, roles: [...change.addRoles] });
  if ("addPermissions" in change)
    return call("keys.addPermissions", { keyId, permissions: [...change.addPermissions] });
  if ("addCredits" in change) {
    if (!key.credits) return Promise.reject(new Error("It has unlimited credits."));
    return call("keys.updateCredits", { keyId, operation: "increment", value: change.addCredits });
  }
  return call("keys.updateKey", { keyId, ...change });
}

/** Changes these keys, four at a time. */
export function changeSelected(keys: readonly Key[], run: (key: Key) => Promise<unknown>): BulkWork {
  return async (onCount, isStopped) => {
    const changed: Key[] = [];
    const failed: { name: string; reason: string }[] = [];
    const waiting = keys.values();
    const work = async () => {
      for (const key of waiting) {
        if (isStopped()) return;
        try {
          await run(key);
          changed.push(key);
        } catch (error) {
          failed.push({ name: keyName(key), reason: explain(error).detail });
        }
        onCount(changed.length + failed.length);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    return { done: changed.length, failed, changed };
  };
}

/** Changes all keys that match a filter, loaded or not: the service changes up to 100 per call. */
export function changeMatching(
  { order: _, orderBy: __, ...filter }: KeysFilter,
  change: BulkChange,
  before: Pick<BulkReport, "done" | "failed"> & { readonly next: Step } = { done: 0, failed: [], next: newStep() },
): BulkWork {
  return async (onCount, isStopped) => {
    let { done, failed, next } = before;
    const left = () => changeMatching(filter, change, { done, failed, next });
    onCount(done + failed.length);
    for (;;) {
      if (isStopped()) return { done, failed, rest: left() };
      try {
        const { data } = await take(next, filter, change);
        done += data.changed;
        failed = [...failed, ...data.failed.map(({ keyId, detail }) => ({ name: keyId, reason: detail }))];
        onCount(done + failed.length);
        if (data.cursor === undefined) return { done, failed };
        next = newStep(data.cursor);
      } catch (error) {
        return { done, failed, rest: left(), error };
      }
    }
  };
}

/** One call of a change. Its key makes a repetition safe whose first answer was lost: credits are added once. */
interface Step {
  readonly cursor: string | undefined;
  readonly idempotencyKey: string;
}

function newStep(cursor?: string): Step {
  return { cursor, idempotencyKey: crypto.randomUUID() };
}

function take({ cursor, idempotencyKey }: Step, filter: Input<"apis.deleteKeys">, change: BulkChange) {
  const selection = { ...filter, ...(cursor !== undefined && { cursor }) };
  if ("delete" in change) return call("apis.deleteKeys", selection, { idempotencyKey });
  return call("apis.updateKeys", { ...selection, ...change } as Input<"apis.updateKeys">, { idempotencyKey });
}
