/**
 * The dumps in `imports/`, written again by the pg_dump of this machine in each of its forms: the keys are the same in all
 * of them.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { type SourceName, sources } from "../../cli/src/import/sources/sources.ts";
import { makeFolder } from "./process.ts";
import { freshDatabase, runPostgresProgram } from "./services/postgres.ts";

const forms = {
  COPY: [],
  "INSERT without columns": ["--inserts"],
  "INSERT of several rows": ["--rows-per-insert=2", "--on-conflict-do-nothing"],
  "data alone, as INSERT with columns": ["--data-only", "--disable-triggers", "--column-inserts"],
  "quoted names": ["--quote-all-identifiers", "--inserts", "--clean", "--create", "--if-exists"],
};

describe("a dump of PostgreSQL", () => {
  for (const from of ["better-auth", "litellm", "kong"] satisfies SourceName[]) {
    describe(from, () => {
      let database: Awaited<ReturnType<typeof freshDatabase>>;
      const original = fileURLToPath(new URL(`imports/${from}.sql`, import.meta.url));
      before(async () => {
        database = await freshDatabase();
        // The roles of the machine on which the dump was written are not those of this one.
        const { url } = database;
        runPostgresProgram("psql", ["--quiet", "--set=ON_ERROR_STOP=0", `--dbname=${url}`, `--file=${original}`]);
      });
      after(() => database.drop());

      async function keysOf(file: string) {
        const keys: Record<string, unknown>[] = [];
        // The columns that PostgreSQL generates are in INSERT without columns only, without their values.
        for await (const { fields } of sources[from].dump!(file, undefined))
          keys.push({ ...fields, cache_key: undefined });
        return keys;
      }

      for (const [form, options] of Object.entries(forms)) {
        it(`has the same keys as ${form}`, async (t) => {
          const file = join(makeFolder(t), "dump.sql");
          runPostgresProgram("pg_dump", [...options, `--file=${file}`, database.url]);
          const expected = await keysOf(original);
          assert.notEqual(expected.length, 0);
          const boolean = (value: unknown) => (value === "true" ? "t" : value === "false" ? "f" : value);
          const keys = (await keysOf(file)).map((key) =>
            Object.fromEntries(Object.entries(key).map(([name, value]) => [name, boolean(value)])),
          );
          assert.deepEqual(keys, expected);
        });
      }

      it("is rejected in the custom format, and says how to convert it", async (t) => {
        const file = join(makeFolder(t), "dump.sql");
        runPostgresProgram("pg_dump", ["--format=custom", `--file=${file}`, database.url]);
        await assert.rejects(keysOf(file), /pg_restore --file=dump\.sql /);
        runPostgresProgram("pg_restore", [`--file=${file}.plain`, file]);
        assert.deepEqual(await keysOf(`${file}.plain`), await keysOf(original));
      });

      it("is rejected when it ends early, wherever that is", async (t) => {
        const file = join(makeFolder(t), "dump.sql");
        const text = runPostgresProgram("pg_dump", [database.url]);
        for (let bytes = 100; bytes < text.length - 200; bytes += 631) {
          writeFileSync(file, text.subarray(0, bytes));
          await assert.rejects(keysOf(file), { name: "CommandError" }, `${bytes} bytes`);
        }
      });
    });
  }
});
