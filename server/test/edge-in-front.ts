import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request as requestHttp } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../engine/src/clock/clock.ts";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { type Edge, openEdge } from "../src/edge/edge.ts";
import { openEvents } from "../src/log/events.ts";
import { readConfig } from "../src/platform/config/config.ts";
import type { TestServer } from "./harness.ts";

/** Peers on this machine, which say for whom they ask. */
export const LOOPBACK = "127.0.0.0/8";
/** Longer than records may be used without a question. */
const RECORDS_AGE = 1_001;

/** A request of a test. */
interface SentRequest {
  path: string;
  headers: Readonly<Record<string, string | undefined>>;
  body: string | Buffer;
  from: string;
}

/**
 * An edge between a test and its service, over HTTP. Its monotonic clock jumps before each request, so that its records are
 * too old and it first asks for what has changed: the tests of the service expect that a change is in force at once.
 */
export class EdgeInFront {
  readonly #edge: Edge;
  readonly #port: number;
  readonly #home: Server;
  readonly #connections: ReadonlySet<Socket>;
  readonly #folder: string;
  readonly #clock: JumpingClock;
  #underWay = 0;

  private constructor(parts: {
    edge: Edge;
    port: number;
    home: Server;
    connections: ReadonlySet<Socket>;
    folder: string;
    clock: JumpingClock;
  }) {
    this.#edge = parts.edge;
    this.#port = parts.port;
    this.#home = parts.home;
    this.#folder = parts.folder;
    this.#clock = parts.clock;
    this.#connections = parts.connections;
  }

  /** @param more settings of the edge. */
  static async open(server: TestServer, more: Record<string, string> = {}): Promise<EdgeInFront> {
    const connections = new Set<Socket>();
    const home = createServer({ allowHalfOpen: true }, (connection) => {
      connections.add(connection);
      connection.once("close", () => connections.delete(connection));
      server.service.accept(connection);
    });
    home.listen(0, "127.0.0.1");
    await once(home, "listening");
    const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
    const { settings = {} } = server.options;
    const TRUSTED_PROXIES = [settings.TRUSTED_PROXIES, LOOPBACK].filter(Boolean).join(",");
    const config = readConfig(new Map(Object.entries({ PORT: "0", DATA_DIR: folder, TRUSTED_PROXIES, ...more })));
    const { key: rootKey } = await server.grant("replicas.*.open", "ratelimits.*.limit");
    const clock = new JumpingClock(server.clock);
    const silent = () => {};
    const edge = await openEdge(
      config,
      {
        upstream: new URL(`http://127.0.0.1:${(home.address() as AddressInfo).port}`),
        rootKey,
        socket: undefined,
        name: undefined,
        staleMax: 0,
        leases: true,
      },
      {
        clock,
        random: seededRandom(1),
        events: openEvents({ info: silent, warn: silent, error: silent }, () => clock.monotonic()),
      },
    );
    const { port } = await edge.listen();
    return new EdgeInFront({ edge, port, home, connections, folder, clock });
  }

  /** The port of the edge for gRPC, if its settings have one. */
  get grpcPort(): number | undefined {
    return this.#edge.grpcAddress?.port;
  }

  /** Ends the connections to the service, and lets the edge have no other. */
  cutHome(): void {
    this.#home.close();
    for (const connection of this.#connections) connection.destroy();
  }

  /** Lets the edge ask for what has changed before it decides again. */
  outdate(): void {
    this.#clock.jump();
  }

  /** Sends a request to the edge. */
  async send(sent: SentRequest) {
    if (this.#underWay === 0) this.outdate();
    this.#underWay++;
    try {
      return await this.#send(sent);
    } finally {
      this.#underWay--;
    }
  }

  async #send({ path, headers, body, from }: SentRequest) {
    const hops = [headers["x-forwarded-for"], from].filter((hop) => hop !== undefined);
    const request = requestHttp({
      port: this.#port,
      path,
      method: "POST",
      agent: false,
      headers: { ...headers, "x-forwarded-for": hops.join(", "), "content-length": Buffer.byteLength(body) },
    });
    request.end(body);
    const [response] = await once(request, "response");
    let payload = "";
    for await (const text of response.setEncoding("utf8")) payload += text;
    return { status: response.statusCode as number, headers: response.headers as Record<string, string>, payload };
  }

  /** The metrics of the edge. */
  async scrape(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text();
  }

  async close(): Promise<void> {
    await this.#edge.stop();
    this.cutHome();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The clock of a test, whose monotonic time can be moved forward for the edge alone. */
class JumpingClock implements Clock {
  readonly #clock: Clock;
  #ahead = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  jump(): void {
    this.#ahead += RECORDS_AGE;
  }

  now() {
    return this.#clock.now();
  }

  monotonic() {
    return this.#clock.monotonic() + this.#ahead;
  }

  schedule(delay: number, task: () => void) {
    return this.#clock.schedule(delay, task);
  }
}
