import { CommandError, print } from "../../../../cli/src/output.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { LINK_LIFE } from "../../features/dashboard/statements.ts";
import { isAdministrator } from "../../platform/store/access/root-key-lookup.ts";
import type { CommandHandler } from "./invocation.ts";
import { withPreparedStore } from "./store.ts";

/** The time that a service on this machine has for an answer, in milliseconds. */
const ANSWER_TIME_MAX = 1_000;

/** The address that signs in. Browsers do not send the part after `#`, so no log and no proxy sees the token. */
export function signInUrl(url: string, token: string): string {
  return `${url}/#link=${token}`;
}

/** Prints a link that signs in to the dashboard once, as a root key. */
export const signInLink: CommandHandler = (invocation, options) =>
  withPreparedStore(invocation, async (store, defaultWorkspaceId) => {
    const { host, port, dashboard } = invocation.config;
    if (!dashboard) {
      throw new CommandError("LATCHKEY_DASHBOARD=off: there is no dashboard. Set it to on and restart the service.");
    }
    const workspaceId = options.workspace ?? defaultWorkspaceId;
    const rootKeys = await store.read("listRootKeys", { workspaceId });
    const rootKey =
      options.rootKey === undefined
        ? rootKeys.find(isAdministrator)
        : rootKeys.find(({ id }) => id === options.rootKey);
    if (rootKey === undefined) {
      throw new CommandError(
        options.rootKey === undefined
          ? `Workspace ${workspaceId} has no administrator's root key. Create one with \`latchkey root-key create\`.`
          : `There is no root key ${options.rootKey} in workspace ${workspaceId}. List them with \`latchkey root-key list\`.`,
      );
    }
    const { token, expiresAt } = await store.transact("createSignInLink", {
      rootKeyId: rootKey.id,
      now: systemClock.now(),
    });
    const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
    const address = `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
    const url = signInUrl(address, token);
    const lines = [
      url,
      `It signs in as ${rootKey.name} (${rootKey.id}), once, within ${LINK_LIFE / 60_000} minutes, on this machine.`,
    ];
    // The command reads the database, which does not say where its service listens.
    const { getPage } = await import("../../../../cli/src/call.ts");
    const answers = await getPage(address, "/health/live", ANSWER_TIME_MAX).then(
      ({ status }) => status === 200,
      () => false,
    );
    if (!answers) {
      lines.push(`No service answers at ${address}. If it listens elsewhere, give this command its --host and --port.`);
    }
    print(invocation.json, { url, rootKeyId: rootKey.id, expiresAt }, () => lines);
  });
