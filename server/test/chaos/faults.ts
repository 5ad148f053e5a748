import { setTimeout } from "node:timers/promises";
import type { Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import type { TcpProxy } from "../tcp-proxy.ts";
import type { Fleet, FleetEdge, FleetNode, FleetProgram } from "./fleet.ts";
import type { Timeline } from "./timeline.ts";

/** A way in which a part of the fleet fails. */
interface FaultKind<P extends FleetProgram = FleetProgram> {
  name: string;
  /** How long it lasts, in ms. */
  ms: readonly [from: number, to: number];
  /** What it uses up: faults that run at the same time share none of these. `node` and the like stand for one node's. */
  needs: readonly Need[];
  /** Whether it hits one node or one edge, or all nodes. */
  hits: "one" | "all";
  /** What a fleet must offer for it. */
  requires?: "hasSmallDisks" | "hasMovableClocks" | "hasWorkers";
  /** Causes the fault, waits, and repairs it. */
  run(fleet: Fleet, hit: P, wait: () => Promise<unknown>, random: Random): Promise<void>;
}

/** The fault after which a node starts without what it counted since it last wrote its counters. */
export const KILL = "a node is killed (kill -9)";
/** The fault after which an edge starts without what it counted in the last second. */
export const EDGE_KILL = "an edge is killed (kill -9)";

type Need = "node" | "postgres path" | "redis path" | "postgres" | "redis" | "edge" | "home path";

/** A fault at a time of the schedule, in ms from its start. */
export interface PlannedFault {
  at: number;
  ms: number;
  name: string;
  /** What it hits: this node, or this edge; neither: all nodes. */
  node: number | undefined;
  edge?: number;
}

/** What a proxy can do to one connection path. `begin` returns the repair. */
const partitions: Record<string, (proxy: TcpProxy, random: Random) => () => void> = {
  "drops all packets": (proxy) => {
    proxy.blackhole(true);
    return () => proxy.blackhole(false);
  },
  "holds all packets back": (proxy) => {
    proxy.stall();
    return () => proxy.resume();
  },
  "delays packets": (proxy, random) => {
    proxy.delayMs = 20 + random.below(180);
    return () => {
      proxy.delayMs = 0;
    };
  },
  "refuses connections": (proxy) => {
    proxy.isClosed = true;
    proxy.cut();
    return () => {
      proxy.isClosed = false;
    };
  },
  "loses answers": (proxy) => {
    proxy.filter = () => "mute";
    return () => {
      proxy.filter = () => "pass";
      // The muted connections stay mute: a node has to replace them.
    };
  },
  "half-closes connections": (proxy) => {
    proxy.halfClose();
    return () => {};
  },
  "cuts connections after a command": (proxy, random) => {
    proxy.cuts = 1 + random.below(8);
    return () => {
      proxy.cuts = 0;
    };
  },
};

const SHORT = [500, 4_000] as const;
const LONG = [2_000, 10_000] as const;

/** What happens to a process of the program. `freezeMs`: how long it stays frozen. */
function processFaults(of: "node" | "edge", freezeMs: readonly [from: number, to: number]): FaultKind[] {
  const restart = (fleet: Fleet, { index }: FleetProgram) =>
    of === "node" ? fleet.startNode(index) : fleet.startEdge(index);
  const what = of === "node" ? "a node" : "an edge";
  return [
    {
      name: of === "node" ? KILL : EDGE_KILL,
      ms: SHORT,
      needs: [of],
      hits: "one",
      async run(fleet, hit, wait) {
        const server = hit.server!;
        hit.server = undefined;
        await server.kill("SIGKILL");
        await wait();
        await restart(fleet, hit);
      },
    },
    {
      name: `${what} is stopped and started`,
      ms: [0, 1_000],
      needs: [of],
      hits: "one",
      async run(fleet, hit, wait) {
        const server = hit.server!;
        hit.server = undefined;
        const { code } = await server.kill("SIGTERM");
        await wait();
        await restart(fleet, hit);
        // While PostgreSQL or home does not answer, a stop ends after ten seconds, with 1.
        const isAborted = code === 1 && server.output.includes("the stop took too long");
        if (code !== 0 && !isAborted) throw new Error(`${of} ${hit.index} ended with ${code} after SIGTERM`);
      },
    },
    {
      name: `${what} is frozen (SIGSTOP)`,
      ms: freezeMs,
      needs: [of],
      hits: "one",
      async run(_, { server }, wait) {
        server!.signal("SIGSTOP");
        await wait();
        server!.signal("SIGCONT");
      },
    },
    {
      name: `${what}'s clock is wrong`,
      ms: LONG,
      needs: [of],
      hits: "one",
      requires: "hasMovableClocks",
      async run(fleet, hit, wait, random) {
        fleet.setClock(hit, (random.below(2) === 0 ? 1 : -1) * (3 + random.below(118)));
        await wait();
        fleet.setClock(hit, 0);
      },
    },
  ];
}

/** Between an edge and home, what is asked later can be answered earlier: records and changes have different connections. */
const edgePartitions: typeof partitions = {
  ...partitions,
  "delays each connection differently": (proxy, random) => {
    const delays = new WeakMap<object, number>();
    const ofConnections = seededRandom(random.below(2 ** 31));
    proxy.delayOf = (connection) => {
      const delay = delays.get(connection) ?? ofConnections.below(400);
      delays.set(connection, delay);
      return delay;
    };
    return () => {
      proxy.delayOf = undefined;
    };
  },
};

/** Every kind of fault of edges. */
function edgeFaults(): FaultKind<FleetEdge>[] {
  return [
    ...processFaults("edge", [1_000, 8_000]),
    ...Object.entries(edgePartitions).map(
      ([what, begin]): FaultKind<FleetEdge> => ({
        name: `the network between an edge and home ${what}`,
        ms: what.startsWith("half") ? [0, 1] : LONG,
        needs: ["home path"],
        hits: "one",
        async run(_, { home }, wait, random) {
          const repair = begin(home, random);
          await wait();
          repair();
        },
      }),
    ),
  ];
}

/** Every kind of fault of nodes and their servers. `freezeMs`: how long a node stays frozen. */
function nodeFaults(freezeMs: number): FaultKind<FleetNode>[] {
  return [
    ...processFaults("node", [freezeMs, freezeMs]),
    {
      name: "a thread of a node ends",
      ms: [0, 1],
      needs: ["node"],
      hits: "one",
      requires: "hasWorkers",
      // `thread-faults.ts` runs in the nodes.
      run: async (_, { server }) => server!.signal("SIGUSR2"),
    },
    {
      name: "a node's disk is full",
      ms: LONG,
      needs: ["node"],
      hits: "one",
      requires: "hasSmallDisks",
      async run(fleet, node, wait) {
        const free = fleet.fillDisk(node);
        await wait();
        free();
      },
    },
    {
      name: "the disk of PostgreSQL is full",
      ms: [1_000, 6_000],
      hits: "all",
      requires: "hasSmallDisks",
      needs: ["postgres"],
      async run(fleet, _, wait) {
        const free = fleet.fillDisk(undefined);
        await wait();
        free();
      },
    },
    {
      name: "PostgreSQL crashes",
      ms: [0, 1],
      needs: ["postgres"],
      hits: "all",
      async run(fleet) {
        const [writer] = await fleet.query("select pid from pg_stat_activity where backend_type = 'walwriter'");
        // The server ends all other processes, and recovers as after a power loss.
        process.kill(writer.pid, "SIGKILL");
        await fleet.query("select 1");
      },
    },
    {
      name: "PostgreSQL restarts",
      ms: [0, 1],
      needs: ["postgres"],
      hits: "all",
      run: (fleet) => fleet.postgres.restart("SIGINT"),
    },
    {
      name: "PostgreSQL ends all connections",
      ms: [0, 1],
      needs: ["postgres"],
      hits: "all",
      async run(fleet) {
        await fleet.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'latchkey-%'",
        );
      },
    },
    {
      name: "PostgreSQL is frozen",
      ms: [1_000, 8_000],
      needs: ["postgres", "postgres path"],
      hits: "all",
      run: ({ nodes }, _, wait) =>
        throughAll(
          nodes.map(({ postgres }) => postgres),
          wait,
        ),
    },
    {
      name: "Redis loses its data (FLUSHALL)",
      ms: [0, 1],
      needs: ["redis"],
      hits: "all",
      run: (fleet) => fleet.flushRedis(),
    },
    {
      name: "Redis is killed and restarts",
      ms: [0, 1],
      needs: ["redis"],
      hits: "all",
      run: (fleet) => fleet.redis.restart("SIGKILL"),
    },
    {
      name: "Redis is frozen",
      ms: [1_000, 8_000],
      needs: ["redis", "redis path"],
      hits: "all",
      run: ({ nodes }, _, wait) =>
        throughAll(
          nodes.map(({ redis }) => redis),
          wait,
        ),
    },
    ...(["postgres", "redis"] as const).flatMap((server) =>
      Object.entries(partitions).map(
        ([what, begin]): FaultKind<FleetNode> => ({
          name: `the network between a node and ${server === "postgres" ? "PostgreSQL" : "Redis"} ${what}`,
          ms: what.startsWith("half") ? [0, 1] : LONG,
          needs: [`${server} path`],
          hits: "one",
          async run(_, node, wait, random) {
            const repair = begin(node[server], random);
            await wait();
            repair();
          },
        }),
      ),
    ),
  ];
}

/** Holds back everything on these paths. */
async function throughAll(proxies: TcpProxy[], wait: () => Promise<unknown>): Promise<void> {
  for (const proxy of proxies) proxy.stall();
  await wait();
  for (const proxy of proxies) proxy.resume();
}

export interface ScheduleOptions {
  lengthMs: number;
  freezeMs: number;
  nodes: number;
  edges: number;
  /** Divides how long other faults than the freeze of a node last. */
  haste: number;
}

/** The faults of a run, of nodes and of edges. They happen at the same times: an edge can be cut off while a node is frozen. */
export function planFaults(
  random: Random,
  { lengthMs, freezeMs, nodes, edges, haste }: ScheduleOptions,
  fleet: Pick<Fleet, "hasSmallDisks" | "hasMovableClocks" | "hasWorkers">,
): PlannedFault[] {
  const possible = ({ requires }: { requires?: FaultKind["requires"] }) => requires === undefined || fleet[requires];
  const scaleOf = ({ ms }: PlannedKind) => (ms[0] === freezeMs ? 1 : haste);
  const ofNodes = planTracks(random, nodeFaults(freezeMs).filter(possible), { lengthMs, haste, count: nodes, scaleOf });
  const ofEdges =
    edges === 0 ? [] : planTracks(random, edgeFaults().filter(possible), { lengthMs, haste, count: edges, scaleOf });
  return [...ofNodes, ...ofEdges.map(({ node, ...fault }) => ({ ...fault, node: undefined, edge: node! }))].sort(
    (a, b) => a.at - b.at,
  );
}

type PlannedKind = Pick<FaultKind, "name" | "ms" | "needs" | "hits">;

interface TrackOptions {
  lengthMs: number;
  haste: number;
  /** How many nodes, or edges. */
  count: number;
  scaleOf(kind: PlannedKind): number;
}

/**
 * Two faults at a time, from a deck that contains every kind once and is shuffled again when it is empty. Faults that overlap
 * share no part of the fleet.
 */
function planTracks(
  random: Random,
  kinds: readonly PlannedKind[],
  { lengthMs, haste, count, scaleOf }: TrackOptions,
): PlannedFault[] {
  const planned: (PlannedFault & { needs: Set<string> })[] = [];
  const freeAt = [0, 300];
  let deck: PlannedKind[] = [];
  for (let tooLong = 0; tooLong < kinds.length; ) {
    if (deck.length === 0) deck = shuffled(random, kinds);
    const track = freeAt[0]! <= freeAt[1]! ? 0 : 1;
    const kind = deck.shift()!;
    const node = kind.hits === "one" ? random.below(count) : undefined;
    const ms = Math.round((kind.ms[0] + random.below(kind.ms[1] - kind.ms[0] + 1)) / scaleOf(kind));
    const at = freeAt[track]! + Math.round((300 + random.below(1_500)) / haste);
    const needs = new Set(
      kind.needs.flatMap((need) =>
        node === undefined && need.endsWith("path")
          ? Array.from({ length: count }, (_, i) => `${need} ${i}`)
          : [`${need} ${node ?? ""}`],
      ),
    );
    const rival = planned.find(
      (other) =>
        other.at + other.ms + GAP_MS > at &&
        at + ms + GAP_MS > other.at &&
        [...needs].some((need) => other.needs.has(need)),
    );
    if (at + ms > lengthMs) {
      tooLong++;
      continue;
    }
    if (rival) {
      deck.push(kind);
      freeAt[track] = at;
      continue;
    }
    tooLong = 0;
    planned.push({ at, ms, name: kind.name, node, needs });
    freeAt[track] = at + ms;
  }
  return planned.map(({ at, ms, name, node }) => ({ at, ms, name, node }));
}

/** Time between two faults of one part: its repair takes time. */
const GAP_MS = 2_500;

function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const left = [...items];
  return items.map(() => left.splice(random.below(left.length), 1)[0]!);
}

interface RunOptions {
  freezeMs: number;
  random: Random;
  onFault(fault: PlannedFault): void;
}

/** Runs the faults at their times, and resolves when all are repaired. What hits nodes can be felt at every edge. */
export async function runFaults(
  fleet: Fleet,
  plan: readonly PlannedFault[],
  timelines: { nodes: Timeline; edges: Timeline },
  { freezeMs, random, onFault }: RunOptions,
): Promise<string[]> {
  const ofNodes = new Map(nodeFaults(freezeMs).map((kind) => [kind.name, kind]));
  const ofEdges = new Map(edgeFaults().map((kind) => [kind.name, kind]));
  const problems: string[] = [];
  await Promise.all(
    plan.map(async (fault) => {
      await setTimeout(fault.at);
      const { name, node, edge } = fault;
      const hit = edge === undefined ? fleet.nodes[node ?? 0]! : fleet.edges[edge]!;
      // A repair can last longer than planned on a slow machine.
      if ((node !== undefined || edge !== undefined) && hit.server === undefined) return;
      onFault(fault);
      const ends = [timelines.edges.begin(name, edge)];
      if (edge === undefined) ends.push(timelines.nodes.begin(name, node));
      const wait = () => setTimeout(fault.ms);
      try {
        if (edge === undefined) await ofNodes.get(name)!.run(fleet, fleet.nodes[node ?? 0]!, wait, random);
        else await ofEdges.get(name)!.run(fleet, fleet.edges[edge]!, wait, random);
      } catch (error) {
        const where = edge === undefined ? `node ${node}` : `edge ${edge}`;
        problems.push(`${name}, ${where}: ${(error as Error).message.slice(0, 2_000)}`);
      } finally {
        for (const end of ends) end();
      }
    }),
  );
  return problems;
}
