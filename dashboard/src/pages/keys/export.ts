import type { Key } from "@latchkey/sdk";
import { type Input, latchkey } from "../../api/client.ts";
import { csvText, save } from "../../api/csv.ts";
import { counted } from "../../api/format.ts";
import { toast, toastError } from "../../ui/overlays/toast.tsx";

const KEYS_MAX = 100_000;
const columns = [
  "keyId",
  "name",
  "start",
  "owner",
  "enabled",
  "expires",
  "createdAt",
  "lastUsedAt",
  "credits",
  "roles",
  "permissions",
  "meta",
];

/** Saves keys as a file: those that a filter finds, at most 100,000, or these. It has no secrets. */
export async function exportKeys(
  source: Input<"apis.listKeys"> | readonly Key[],
  format: "csv" | "json",
  name = "keys",
): Promise<void> {
  try {
    const keys: Key[] = [];
    if (Array.isArray(source)) keys.push(...source);
    else {
      toast({ text: "Reading the keys. The file is saved when all were read." });
      for await (const key of latchkey.apis.listKeys.all({ ...(source as Input<"apis.listKeys">), limit: 100 })) {
        keys.push(key);
        if (keys.length === KEYS_MAX) break;
      }
    }
    const text = format === "json" ? `${JSON.stringify(keys, null, 2)}\n` : csvOf(keys);
    save(
      text,
      `${name.replaceAll(/[^\w-]+/g, "-")}-keys.${format}`,
      format === "json" ? "application/json" : "text/csv",
    );
    toast({ text: `Saved ${counted(keys.length, "key")}.` });
  } catch (error) {
    toastError(error);
  }
}

/** Keys as lines of CSV. */
export function csvOf(keys: readonly Key[]): string {
  const rows = keys.map((key) => [
    key.keyId,
    key.name,
    key.start,
    key.identity?.externalId,
    key.enabled,
    timeText(key.expires),
    timeText(key.createdAt),
    timeText(key.lastUsedAt),
    key.credits?.remaining,
    key.roles?.join(" "),
    key.permissions?.join(" "),
    key.meta && JSON.stringify(key.meta),
  ]);
  return csvText([columns, ...rows]);
}

function timeText(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString();
}
