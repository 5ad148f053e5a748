import { ErrorReply } from "@redis/client";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { type Endpoint, endpointOf, type Login, nameOf, urlOf } from "./address.ts";
import { openClient } from "./client.ts";
import { RedisUnsuitable } from "./server-facts.ts";

/** Bounds what one server can make this process remember. */
const RANGES_MAX = 20_000;

/** Slots `first` to `last`, and the servers that have them: the primary first. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly servers: readonly Endpoint[];
}

/** What one server of a cluster knows about it. */
export interface ClusterView {
  /** Raised by each failover, so the highest one is the latest. */
  readonly epoch: number;
  readonly ranges: readonly SlotRange[];
}

/** The view of the latest failover. */
export function latestView(views: readonly ClusterView[]): ClusterView | undefined {
  return views.reduce<ClusterView | undefined>(
    (best, view) => (best && best.epoch >= view.epoch ? best : view),
    undefined,
  );
}

/**
 * Asks one server of a cluster.
 *
 * @throws {RedisUnsuitable} if it is not in a cluster.
 */
export async function readView(
  server: Endpoint,
  send: (args: readonly string[]) => Promise<unknown>,
): Promise<ClusterView> {
  try {
    const [info, slots] = await Promise.all([send(["CLUSTER", "INFO"]), send(["CLUSTER", "SLOTS"])]);
    return {
      epoch: Number(/cluster_current_epoch:(\d+)/.exec(String(info))?.[1] ?? 0),
      ranges: readRanges(slots, server),
    };
  } catch (error) {
    if (!(error instanceof ErrorReply && /cluster support disabled|unknown command/i.test(error.message))) throw error;
    throw new RedisUnsuitable(
      `${nameOf(server)} is not a node of a cluster: write redis://host:port for one server, or redis+sentinel:// for Sentinels`,
    );
  }
}

/** Asks one server on a connection of its own. */
export async function readViewOnce(
  server: Endpoint,
  login: Login,
  clock: Clock,
  timeout: Milliseconds,
): Promise<ClusterView> {
  const client = openClient(urlOf(server, login), timeout);
  // The failure also rejects the command.
  client.on("error", () => {});
  const limit = clock.schedule(timeout, () => client.destroy());
  try {
    await client.connect();
    return await readView(server, (args) => client.sendCommand(args as string[]));
  } finally {
    limit.cancel();
    client.destroy();
  }
}

/** Parses the reply to CLUSTER SLOTS. */
function readRanges(reply: unknown, asked: Endpoint): SlotRange[] {
  const ranges = reply as [number, number, ...[host: string | null, port: number][]][];
  return ranges.slice(0, RANGES_MAX).map(([first, last, ...servers]) => ({
    first,
    last,
    servers: servers.map(([host, port]) => endpointOf(host ?? "", port, asked)),
  }));
}

/** Where a server that rejects a command sends it. Undefined for other errors. */
export function readRedirect(
  error: unknown,
  asked: Endpoint,
): { kind: "moved" | "ask"; server: Endpoint } | { kind: "again" } | undefined {
  if (!(error instanceof ErrorReply)) return undefined;
  if (error.message.startsWith("TRYAGAIN")) return { kind: "again" };
  const match = /^(MOVED|ASK) \d+ (.*):(\d+)$/.exec(error.message);
  if (!match) return undefined;
  const [, kind, host, port] = match;
  return { kind: kind === "ASK" ? "ask" : "moved", server: endpointOf(host!, Number(port), asked) };
}
