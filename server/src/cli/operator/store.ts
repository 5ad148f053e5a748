import { existsSync } from "node:fs";
import { CommandError } from "../../../../cli/src/output.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import { pendingSteps, requireSupported } from "../../platform/store/migrate.ts";
import type { Store } from "../../platform/store/store.ts";
import type { AppProcedures } from "../../service/procedures.ts";
import type { Invocation } from "./invocation.ts";

/**
 * Opens the configured database for one command, and closes it afterwards, also after an error. `creates`: creates an
 * embedded database that does not exist.
 *
 * @throws {CommandError} when there is no database, or it is unavailable.
 */
export async function withStore<T>(
  { config, secrets }: Invocation,
  work: (store: Store<AppProcedures>) => Promise<T>,
  { creates = false }: { creates?: boolean } = {},
): Promise<T> {
  if (config.database.kind === "sqlite" && !existsSync(config.database.file) && !creates) {
    throw new CommandError(
      `There is no database at ${config.database.file}. Run this command in the folder where the service runs, or give ` +
        "its data folder with --data-dir, or its database with --database-url.",
    );
  }
  try {
    const { openStore } = await import("../../service/app-store.ts");
    const store = await openStore(config, secrets, { clock: systemClock });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  } catch (error) {
    throw error instanceof StoreUnavailable ? unavailable(error) : error;
  }
}

/** An unavailable database, as a message for the operator. */
function unavailable(error: StoreUnavailable): CommandError {
  const { message, cause } = error;
  const detail = cause instanceof Error && !message.includes(cause.message) ? `: ${cause.message}` : "";
  return new CommandError(message + detail, { cause: error });
}

/** Opens a database that a service has set up: every migration has run, and the default workspace exists. */
export function withPreparedStore<T>(
  invocation: Invocation,
  work: (store: Store<AppProcedures>, defaultWorkspaceId: string) => Promise<T>,
): Promise<T> {
  return withStore(invocation, async (store) => {
    const schema = await store.read("schemaState", null);
    requireSupported(schema);
    const workspace = pendingSteps(schema).length === 0 ? await store.read("findDefaultWorkspace", null) : undefined;
    if (!workspace) throw new CommandError("This database is not set up yet. Start the service once.");
    await store.read("requireServable", null);
    return work(store, workspace.id);
  });
}
