import { UsageError } from "../../../../cli/src/output.ts";
import { keepProcessAlive } from "../../../../engine/src/clock/keep-alive.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { systemRandom } from "../../../../engine/src/random/system.ts";
import { ReplicaRefused } from "../../../../engine/src/replica/home.ts";
import { openEdge } from "../../edge/edge.ts";
import { openEvents } from "../../log/events.ts";
import { openProcessLog } from "../../log/log.ts";
import { OperatorError } from "../../log/operator-error.ts";
import { parseDuration } from "../../platform/config/setting-kinds.ts";
import { collectStartGarbage } from "../../platform/memory/collect-garbage.ts";
import { cannotListen } from "./cannot-listen.ts";
import type { Invocation } from "./invocation.ts";
import { Shutdown } from "./shutdown.ts";

/** The longest time for which an edge may decide without home. */
const STALE_MAX = 3_600_000;

/** Starts an edge and runs it until a signal stops it. */
export async function edge(
  { config, secrets, json }: Invocation,
  options: { upstream?: string | undefined; socket?: string; name?: string; stale?: string; leases?: boolean },
): Promise<void> {
  const upstream = readUpstream(options.upstream);
  if (secrets.rootKey === undefined) {
    throw new UsageError(
      "An edge needs a root key with the permission replicas.*.open: set LATCHKEY_ROOT_KEY or LATCHKEY_ROOT_KEY_FILE",
    );
  }
  const { log, output } = openProcessLog(config.logLevel);
  const events = openEvents(log, () => systemClock.monotonic());
  const starting = new AbortController();
  const releaseProcess = keepProcessAlive();
  const shutdown = new Shutdown(config.drain, { events, output, starting });
  try {
    const opened = await openEdge(
      config,
      {
        upstream,
        rootKey: secrets.rootKey,
        socket: options.socket,
        name: options.name,
        staleMax: readStale(options.stale),
        leases: options.leases !== false,
      },
      { clock: systemClock, random: systemRandom, events, waits: starting.signal },
    ).catch((error: unknown) => {
      throw refused(upstream, error);
    });
    shutdown.service = opened;
    const { address, port } = await opened.listen().catch((error: unknown) => {
      throw cannotListen(config, error);
    });
    const url = `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
    collectStartGarbage({ clock: systemClock });
    events.edgeStarted({ address: url, home: upstream.origin, socket: options.socket });
    if (!json && process.stdout.isTTY) {
      const also = options.socket === undefined ? "" : ` and on ${options.socket}`;
      console.log(`This edge answers at ${url}${also}, for ${upstream.origin}.`);
    }
  } catch (error) {
    releaseProcess();
    await shutdown.service?.stop();
    if (!starting.signal.aborted) throw error;
    events.stopped();
    shutdown.exit(shutdown.code);
  }
}

/** The error of an edge that its service refuses, with what to do. Other errors stay as they are. */
function refused(upstream: URL, error: unknown): unknown {
  if (!(error instanceof ReplicaRefused)) return error;
  return new OperatorError(
    `${upstream.origin} refuses the root key of this edge (${error.message}). Set LATCHKEY_ROOT_KEY or ` +
      "LATCHKEY_ROOT_KEY_FILE to a root key of it with the permission replicas.*.open",
    { cause: error },
  );
}

/** @throws {UsageError} */
function readStale(given = "0"): number {
  const stale = parseDuration(given);
  if (stale >= 0 && stale <= STALE_MAX) return stale;
  throw new UsageError(`--stale ${given}: give a duration such as 30s, from 0 to 1h`);
}

/** @throws {UsageError} */
function readUpstream(given: string | undefined): URL {
  if (given === undefined) {
    throw new UsageError(
      "An edge needs the address of the service: --upstream https://keys.example.com, or LATCHKEY_URL",
    );
  }
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw new UsageError(`--upstream ${given}: give an address such as https://keys.example.com`);
  }
  return url;
}
