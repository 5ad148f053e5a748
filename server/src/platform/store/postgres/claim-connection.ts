import pg from "pg";
import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { onlyRow } from "../only-row.ts";

const CONNECT_TIMEOUT: Milliseconds = 3_000;
const QUERY_TIMEOUT: Milliseconds = 3_000;

/** Opens the connection of a claim; `onLost` is called when it breaks. */
export async function openClaimConnection(
  url: string,
  holder: string,
  onLost: (client: pg.Client) => void,
): Promise<{ client: pg.Client; backendPid: number }> {
  const client = new pg.Client({
    connectionString: url,
    application_name: applicationName(holder),
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    query_timeout: QUERY_TIMEOUT,
    keepAlive: true,
  });
  client.on("error", () => onLost(client));
  client.on("end", () => onLost(client));
  try {
    await client.connect();
    // The server soon releases the lock when it no longer reaches this process.
    await client.query(
      "set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3; set statement_timeout = 3000",
    );
    return { client, backendPid: await readBackendPid(client) };
  } catch (error) {
    destroy(client);
    throw error;
  }
}

/** The name by which the server lists the connection of a holder. */
export function applicationName(holder: string): string {
  return `latchkey-claim-${holder}`;
}

/** The process of the server that serves a connection. */
export async function readBackendPid(client: pg.Client): Promise<number> {
  return onlyRow(await client.query<{ pid: number }>("select pg_backend_pid() as pid")).pid;
}

/** Calls a lock function; returns whether it succeeded. */
export async function callLock(client: pg.Client, lockFunction: string, lock: number): Promise<boolean> {
  return onlyRow(await client.query<{ done: boolean }>(`select ${lockFunction}($1) as done`, [lock])).done;
}

/** Closes the socket without a message to the server, which may be unreachable. */
export function destroy(client: pg.Client | undefined): void {
  (client as unknown as { connection?: { stream: { destroy(): void } } })?.connection?.stream.destroy();
}
