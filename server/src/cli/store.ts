import { systemClock } from "../clock/system.ts";
import type { AppProcedures } from "../procedures.ts";
import { openStore } from "../service.ts";
import type { Store } from "../store/store.ts";
import { type Invocation, Refused } from "./output.ts";

/** Opens the configured database for one command, and closes it whatever happens. */
export async function withStore<T>(
  { config, secrets }: Invocation,
  work: (store: Store<AppProcedures>) => Promise<T>,
): Promise<T> {
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
    if (!workspace) throw new Refused("This database has not been set up yet. Start `latchkey serve` once.");
    return work(store, workspace.id);
  });
}
