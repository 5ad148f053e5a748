/** Many edges that are attached to one node, as far as the node can tell: their protocol over connections that stay open. */
import { connect, type Socket } from "node:net";
import { ROOT_KEY } from "./keys.ts";

/** Those of an edge (`engine/src/replica/stream.ts`), in ms. */
const HOLD_TIME = 300;
const POLL_PAUSE = 20;
const RETRY = { min: 100, max: 2_000 } as const;

interface CrowdOptions {
  url: string;
  edges: number;
  /** Hashes of keys that each edge asks for again when its records may be outdated. */
  hashes: readonly string[];
}

/** What happened since the last look. */
export interface CrowdCounts {
  polls: number;
  /** Answers that said that everything may have changed. */
  lost: number;
  /** Tags of changes. */
  tags: number;
  /** Questions about records. */
  questions: number;
  /** Answers other than 200, and connections that ended. */
  failures: number;
}

export class EdgeCrowd {
  readonly #edges: SimulatedEdge[];
  #counts = newCounts();

  constructor({ url, edges, hashes }: CrowdOptions) {
    const count = (what: keyof CrowdCounts, by = 1) => {
      this.#counts[what] += by;
    };
    this.#edges = Array.from({ length: edges }, (_, i) => new SimulatedEdge(i, { url, hashes, count }));
  }

  /** Attaches all edges within this time. Resolves when each has had an answer. */
  async attach(withinMs: number): Promise<void> {
    await Promise.all(this.#edges.map((edge, i) => edge.start((withinMs * i) / this.#edges.length)));
  }

  /** Lets every edge ask with the position of another server, as after the loss of the changes. */
  loseChanges(): void {
    for (const edge of this.#edges) edge.loseChanges();
  }

  take(): CrowdCounts {
    const counts = this.#counts;
    this.#counts = newCounts();
    return counts;
  }

  close(): void {
    for (const edge of this.#edges) edge.close();
  }
}

interface EdgeParts {
  url: string;
  hashes: readonly string[];
  count(what: keyof CrowdCounts, by?: number): void;
}

class SimulatedEdge {
  readonly #parts: EdgeParts;
  readonly #changes: Connection;
  readonly #questions: Connection;
  readonly #description: string;
  #position: string | undefined;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  readonly #first = Promise.withResolvers<void>();

  constructor(index: number, parts: EdgeParts) {
    this.#parts = parts;
    this.#changes = new Connection(parts.url);
    this.#questions = new Connection(parts.url);
    const id = `edge_${String(index).padStart(16, "0")}`;
    const edge = { id, kind: "process", version: "0.1.0", records: parts.hashes.length, reports: 0 };
    const tagKey = Buffer.alloc(24, index).toString("base64url");
    this.#description = JSON.stringify({ tagKey, edge }).slice(1, -1);
  }

  start(afterMs: number): Promise<void> {
    this.#timer = setTimeout(() => this.#poll(0), afterMs);
    return this.#first.promise;
  }

  loseChanges(): void {
    this.#position = "another.1.1.AAAAAAAA.process.1";
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#changes.close();
    this.#questions.close();
  }

  #poll(wait: number): void {
    const position = this.#position === undefined ? "" : `"position":"${this.#position}",`;
    const askedOf = this.#position;
    this.#changes.post("replica.listChanges", `{${position}"wait":${wait},${this.#description}}`, (status, body) => {
      if (this.#isClosed) return;
      if (status !== 200) return this.#fail();
      const { count } = this.#parts;
      this.#failures = 0;
      count("polls");
      // What was lost meanwhile stays lost.
      if (this.#position === askedOf) this.#position = /"position":"([^"]+)"/.exec(body)?.[1];
      const tags = /"tags":\[([^\]]*)\]/.exec(body)?.[1] ?? "";
      if (tags !== "") count("tags", tags.split(",").length);
      if (body.includes('"isLost":true')) this.#askAgain();
      this.#first.resolve();
      this.#timer = setTimeout(() => this.#poll(HOLD_TIME), POLL_PAUSE);
    });
  }

  /** Its callers go on, so each key that they use is asked for again. */
  #askAgain(): void {
    const { hashes, count } = this.#parts;
    count("lost");
    if (hashes.length === 0) return;
    count("questions");
    const body = `{"keys":${JSON.stringify(hashes)},"position":"${this.#position}"}`;
    this.#questions.post("replica.resolveKeys", body, (status) => {
      if (status === 200 || this.#isClosed) return;
      count("failures");
      this.#timer = setTimeout(() => this.#askAgain(), RETRY.max / 2);
    });
  }

  #fail(): void {
    this.#parts.count("failures");
    const pause = Math.min(RETRY.max, RETRY.min * 2 ** Math.min(10, this.#failures++));
    this.#timer = setTimeout(() => this.#poll(0), pause / 2 + (Math.random() * pause) / 2);
  }
}

/** One connection that asks one question at a time. Cheap, so that the load takes less CPU than the node. */
class Connection {
  readonly #url: URL;
  #socket: Socket | undefined;
  #received = "";
  #onAnswer: ((status: number, body: string) => void) | undefined;

  constructor(url: string) {
    this.#url = new URL(url);
  }

  /** Status 0: the connection ended. */
  post(operation: string, body: string, onAnswer: (status: number, body: string) => void): void {
    this.#onAnswer = onAnswer;
    this.#received = "";
    this.#socket ??= this.#open();
    this.#socket.write(
      `POST /v2/${operation} HTTP/1.1\r\nHost: ${this.#url.host}\r\nAuthorization: Bearer ${ROOT_KEY}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  }

  close(): void {
    this.#onAnswer = undefined;
    this.#socket?.destroy();
  }

  #open(): Socket {
    const socket = connect(Number(this.#url.port), this.#url.hostname);
    socket.setNoDelay();
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#receive(text));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#socket = undefined;
      this.#answer(0, "");
    });
    return socket;
  }

  #receive(text: string): void {
    this.#received += text;
    const end = this.#received.indexOf("\r\n\r\n");
    if (end === -1) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#received)?.[1]);
    if (this.#received.length < end + 4 + length) return;
    this.#answer(Number(this.#received.slice(9, 12)), this.#received.slice(end + 4));
  }

  #answer(status: number, body: string): void {
    const onAnswer = this.#onAnswer;
    this.#onAnswer = undefined;
    onAnswer?.(status, body);
  }
}

function newCounts(): CrowdCounts {
  return { polls: 0, lost: 0, tags: 0, questions: 0, failures: 0 };
}
