import { existsSync } from "node:fs";
import { systemClock } from "../clock/system.ts";
import type { AppProcedures } from "../service/procedures.ts";
import { openStore } from "../service/service.ts";
import type { Store } from "../store/store.ts";
import { CommandError, type Invocation } from "./output.ts";

/**
 * Opens the configured database for one command, and closes it whatever happens. `makes`: an embedded database that is
 * not there is made.
 */
export async function withStore<T>(
  { config, secrets }: Invocation,
  work: (store: Store<AppProcedures>) => Promise<T>,
  { makes = false }: { makes?: boolean } = {},
): Promise<T> {
  if (config.database.kind === "sqlite" && !existsSync(config.database.file) && !makes) {
    throw new CommandError(
      `There is no database at ${config.database.file}. Run this where the service runs, or name its data folder with ` +
        "--data-dir or its database with --database-url.",
    );
  }
  const store = await openStore(config, secrets, { clock: systemClock });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Opens it with every migration run and the default workspace there, as `serve` would find it. */
export function withPreparedStore<T>(
  invocation: Invocation,
  work: (store: Store<AppProcedures>, defaultWorkspaceId: string) => Promise<T>,
): Promise<T> {
  return withStore(invocation, async (store) => {
    const workspace = (await store.read("migrationStatus", null)).every((step) => step.executedAt)
      ? await store.read("findDefaultWorkspace", null)
      : undefined;
    if (!workspace) throw new CommandError("This database has not been set up yet. Start the service once.");
    return work(store, workspace.id);
  });
}
