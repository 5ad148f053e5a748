/**
 * Imports keys, one batch after the other: `importer.ts <url> <api> <keys> <batch>`. Says `ready` when all bodies are
 * written, begins when it is told anything, and prints `done` at the end.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { JSON_TYPE, post, ROOT_KEY } from "./keys.ts";

const [url, apiId, count, batch] = process.argv.slice(2) as [string, string, string, string];
const headers = { ...JSON_TYPE, Authorization: `Bearer ${ROOT_KEY}` };
const bodies: string[] = [];
for (let left = Number(count); left > 0; left -= Number(batch)) {
  const keys = Array.from({ length: Math.min(left, Number(batch)) }, () => ({
    hash: randomBytes(32).toString("hex"),
    name: "imported",
  }));
  bodies.push(JSON.stringify({ migrationId: "bench", apiId, keys }));
}
console.log("ready");
await once(process.stdin, "data");
for (const body of bodies) {
  const text = await post(`${url}/v2/keys.migrateKeys`, headers, body);
  if (!text.endsWith('"failed":[]}}')) throw new Error(`Keys were not imported: ${text.slice(-200)}`);
}
console.log("done");
process.exit();
