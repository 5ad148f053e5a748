import { CommandError, type Invocation, print } from "./output.ts";
import { withPreparedStore } from "./store.ts";

/** Changes the master key, step by step, while services run. Stopped in the middle, it goes on when run again. */
export function rotateVault(invocation: Invocation): Promise<void> {
  return withPreparedStore(invocation, async (store) => {
    const { from, to } = await store.transact("vaultRotation", null);
    if (from === undefined) {
      throw new CommandError("This database has no vault yet. Start the service once with LATCHKEY_VAULT_KEY.");
    }
    if (to === undefined) {
      throw new CommandError(
        "There is no key to change to. Give both with LATCHKEY_VAULT_KEY=<current>,<next> (openssl rand -base64 32), " +
          "here and on every node, and run this again.",
      );
    }
    let wrapped = 0;
    for (let done = false; !done; ) {
      const step = await store.transact("rotateVault", to);
      wrapped += step.wrapped;
      done = step.done;
    }
    // In the data folder the next key takes the place of the current one.
    await store.transact("checkVault", null);
    print(invocation.json, { from, to, wrapped }, () => [
      `The vault stands under the master key ${to} (before: ${from}); ${wrapped} data keys were wrapped anew.`,
      ...(invocation.secrets.vaultKeys.length > 0
        ? ["Now set LATCHKEY_VAULT_KEY to that key alone, node by node, and destroy the former one."]
        : []),
    ]);
  });
}
