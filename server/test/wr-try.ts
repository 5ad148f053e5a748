import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start } from "./process.ts";
const directory = mkdtempSync(join(tmpdir(), "wr-"));
const server = await start({ directory });
const { apiId } = await server.ok("apis.createApi", { name: "orders" });
const spent = await server.ok("keys.createKey", { apiId, credits: { remaining: 1e9 } });
const pid = Number((await (await fetch(`${server.address}/metrics`)).text()).match(/x/) ? 0 : 0);
async function run(label: string, n: number, f: () => Promise<unknown>) {
  let count = 0; const end = performance.now() + 4000; const cpu = process.cpuUsage();
  const m0 = Number(/^process_cpu_seconds_total ([\d.]+)/m.exec(await (await fetch(`${server.address}/metrics`)).text())?.[1] ?? 0);
  await Promise.all(Array.from({ length: n }, async () => { while (performance.now() < end) { await f(); count++; } }));
  const m1 = Number(/^process_cpu_seconds_total ([\d.]+)/m.exec(await (await fetch(`${server.address}/metrics`)).text())?.[1] ?? 0);
  const used = process.cpuUsage(cpu);
  console.log(label, n, Math.round(count / 4), "per s; client cpu", ((used.user + used.system) / 4e6).toFixed(2), "server cpu", ((m1 - m0) / 4).toFixed(2));
}
await run("create", 8, () => server.ok("keys.createKey", { apiId }));
await run("create", 24, () => server.ok("keys.createKey", { apiId }));
await run("rename", 24, () => server.ok("keys.updateKey", { keyId: spent.keyId, name: String(Math.random()) }));
await run("spend", 48, () => server.ok("keys.verifyKey", { key: spent.key }));
await server.kill("SIGTERM");
process.exit();
