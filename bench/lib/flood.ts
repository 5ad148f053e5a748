/**
 * Verifications of keys that nobody made, checksum and all, each another one: `flood.ts <url> <per second>`. Says `begun`,
 * goes on until its input ends, then prints how many answers of each status there were.
 */
import { randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { formatKey } from "../../server/src/rules/key-string.ts";
import { VERIFY_PATH } from "./keys.ts";
import { Pipeline } from "./pipeline.ts";

const CONNECTIONS = 8;
const TICK_MS = 1;
/** A server that cannot follow is not buried deeper. */
const OPEN_MAX = 200;

const [url, rate] = process.argv.slice(2) as [string, string];
const perSecond = Number(rate);
const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => Pipeline.open(url)));
const statuses: Record<number, number> = {};
let ended = false;
process.stdin.on("end", () => {
  ended = true;
});
process.stdin.resume();

console.log("begun");
const startedAt = performance.now();
let sent = 0;
while (!ended) {
  const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond) - sent;
  for (let i = 0; i < due; i++) {
    sent++;
    const connection = connections[sent % CONNECTIONS]!;
    if (connection.open > OPEN_MAX) continue;
    const { key } = formatKey("bench", randomBytes(16));
    void connection.post(VERIFY_PATH, JSON.stringify({ key })).then((status) => {
      statuses[status] = (statuses[status] ?? 0) + 1;
    });
  }
  await setTimeout(TICK_MS);
}
console.log(JSON.stringify({ statuses, seconds: (performance.now() - startedAt) / 1_000 }));
process.exit();
