import { type Invocation, print, table } from "./output.ts";
import { withStore } from "./store.ts";

/** Which migrations have run here. */
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

/** Runs those that have not. */
export function migrateUp(invocation: Invocation): Promise<void> {
  return withStore(
    invocation,
    async (store) => {
      const executed = await store.transact("migrate", null);
      print(invocation.json, { executed }, () =>
        executed.length === 0 ? ["Nothing to do: every migration has run."] : executed.map((name) => `ran ${name}`),
      );
    },
    { makes: true },
  );
}
