import { type Invocation, print, table } from "../output.ts";
import { withStore } from "./store.ts";

/** Prints which migrations have run. */
export function migrateStatus(invocation: Invocation): Promise<void> {
  return withStore(invocation, async (store) => {
    const steps = await store.read("migrationStatus", null);
    print(invocation.json, steps, () =>
      table(
        ["migration", "state"],
        steps.map(({ name, executedAt }) => [name, executedAt ? `ran at ${executedAt}` : "waits"]),
      ),
    );
  });
}

/** Runs the migrations that have not run. */
export function migrateUp(invocation: Invocation): Promise<void> {
  return withStore(
    invocation,
    async (store) => {
      const executed = await store.transact("migrate", null);
      print(invocation.json, { executed }, () =>
        executed.length === 0 ? ["Nothing to do: every migration has run."] : executed.map((name) => `ran ${name}`),
      );
    },
    { creates: true },
  );
}
