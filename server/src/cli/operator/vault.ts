import { CommandError, print } from "../../../../cli/src/output.ts";
import { UNREADABLE_MAX } from "../../platform/vault/vault.ts";
import type { Invocation } from "./invocation.ts";
import { withPreparedStore } from "./store.ts";

/** Changes the master key step by step while services run. If it is interrupted, the next run continues. */
export function rotateVault(invocation: Invocation): Promise<void> {
  return withPreparedStore(invocation, async (store) => {
    const { from, to } = await store.transact("vaultRotation", null);
    if (from === undefined) {
      throw new CommandError("This database has no vault yet. Start the service once with LATCHKEY_VAULT_KEY.");
    }
    if (to === undefined) {
      throw new CommandError(
        "There is no key to change to. Give both with LATCHKEY_VAULT_KEY=<current>,<next> (openssl rand -base64 32), " +
          "here and on every node, and run this command again.",
      );
    }
    let wrapped = 0;
    let unreadable: readonly string[] = [];
    for (let done = false; !done; ) {
      const step = await store.transact("rotateVault", { to, unreadable });
      wrapped += step.wrapped;
      ({ done, unreadable } = step);
    }
    if (unreadable.length > 0) throw unfinished(wrapped, unreadable);
    // In the data folder, this replaces the current key with the next one.
    await store.transact("checkVault", null);
    print(invocation.json, { from, to, wrapped }, () => [
      `The master key of the vault is ${to} (before: ${from}); ${wrapped} data keys were encrypted again.`,
      ...(invocation.secrets.vaultKeys.length > 0
        ? ["Now set LATCHKEY_VAULT_KEY to that key only, node by node, and destroy the previous one."]
        : []),
    ]);
  });
}

/** The former master key stays the current one, so that nobody destroys it. */
function unfinished(wrapped: number, unreadable: readonly string[]): CommandError {
  const count = Math.min(unreadable.length, UNREADABLE_MAX);
  return new CommandError(
    `The rotation is not complete: ${unreadable.length > count ? "more than " : ""}${count} of the data keys cannot be opened ` +
      `by these master keys; ${wrapped} were encrypted again. Keep both master keys. Restore these rows of ` +
      "`vault_data_keys` from a backup, and run this command again. Their workspaces:",
    { details: unreadable.slice(0, count) },
  );
}
