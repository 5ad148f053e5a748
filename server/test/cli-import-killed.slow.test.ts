/**
 * `latchkey import` in processes that are killed while the service imports their rows. `ROWS=100000 npm test --
 * cli-import-killed` imports more rows.
 */
import assert from "node:assert/strict";
import { createWriteStream, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { hashSecret } from "../../engine/src/crypto/hash.ts";
import { eventually, makeFolder, Program, ROOT_KEY, start } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

describe("an import that is killed twice", () => {
  for (const [database, ROWS] of [
    ["the embedded database", Number(process.env.ROWS ?? 10_000)],
    ["PostgreSQL", Number(process.env.ROWS ?? 3_000)],
  ] as const) {
    it(`ends with each row once: ${ROWS} on ${database}`, async (t) => {
      const directory = makeFolder(t);
      const fresh = database === "PostgreSQL" ? await freshDatabase() : undefined;
      if (fresh) t.after(() => fresh.drop());
      const settings: Record<string, string> = fresh ? { DATABASE_URL: fresh.url } : {};
      const server = await start({ directory, settings });
      const { apiId } = await server.ok("apis.createApi", { name: "imported" });
      const file = join(directory, "keys.csv");
      await writeRows(file, ROWS);
      const launch = () =>
        new Program([main, "import", "keys.csv", "--from", "generic", "--api-id", apiId, "--json"], {
          directory,
          environment: { HOME: directory },
          settings: { URL: server.address, ROOT_KEY },
        });
      const done = () => {
        const state = join(directory, "keys.csv.import-state.json");
        return existsSync(state)
          ? (JSON.parse(readFileSync(state, "utf8")) as { done: number; isSending: boolean })
          : { done: 0, isSending: false };
      };
      for (const least of [ROWS / 50, ROWS / 20]) {
        const killed = launch();
        await eventually(`${least} rows`, () => {
          if (killed.hasEnded) throw new Error(`The import ended too early: ${killed.output}`);
          const { done: rows, isSending } = done();
          // While rows are sent: the service imports them, and the answer is lost.
          return rows >= least && isSending;
        });
        await killed.kill("SIGKILL");
        assert(done().done < ROWS);
      }
      const last = launch();
      assert.deepEqual(await last.ended, { code: 0, signal: null }, last.output);
      const { rows, imported, present, rejected } = JSON.parse(last.stdout);
      assert.deepEqual([rows, imported + present, rejected], [ROWS, ROWS, 0]);
      const names = new Set<string>();
      let count = 0;
      for (let cursor: string | undefined, more = true; more; ) {
        const { body } = await server.call("apis.listKeys", { apiId, limit: 100, ...(cursor && { cursor }) });
        for (const { name } of body.data) names.add(name);
        count += body.data.length;
        ({ cursor, hasMore: more } = body.pagination);
      }
      assert.deepEqual([count, names.size], [ROWS, ROWS]);
      assert.equal((await server.ok("keys.verifyKey", { key: `key_${ROWS - 1}` })).code, "VALID");
    });
  }
});

async function writeRows(file: string, rows: number): Promise<void> {
  const stream = createWriteStream(file);
  stream.write("hash,name\n");
  for (let i = 0; i < rows; i++) stream.write(`${hashSecret(`key_${i}`)},row ${i}\n`);
  await new Promise<void>((resolve, reject) =>
    stream.end((error?: Error | null) => (error ? reject(error) : resolve())),
  );
}
