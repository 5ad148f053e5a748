import { connect, type Socket } from "node:net";
import type { GrpcCalls, GrpcWindow } from "./grpc-load.ts";
import { atPoissonArrivals, sharedNow } from "./poisson-arrivals.ts";
import type { Load } from "./wrk.ts";

const HEAD_BYTES = 9;
const [DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE] = [0, 1, 3, 4, 7, 8];
const [END_STREAM, END_HEADERS, ACK] = [1, 4, 1];
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** The window of a connection, beyond the first 64 KiB: more than a bench receives. */
const WINDOW_BYTES = 2 ** 31 - 1 - 65_535;
/** The first index of the dynamic table of HPACK, which has the field that was added last. */
const DYNAMIC_FIRST = 62;
const PREFIX_BYTES = 5;

process.once("message", async (window: GrpcWindow) => {
  process.send!(await run(window));
  process.disconnect();
});

async function run({ port, seconds, calls }: GrpcWindow): Promise<Load> {
  const startedAt = sharedNow();
  const endsAt = startedAt + seconds * 1_000;
  const connections = Array.from({ length: calls.connections }, () => new Connection(calls, endsAt));
  const ends = connections.map((connection) => connection.run(port));
  if (calls.perSecond !== undefined) {
    let turn = 0;
    const arrivals = { perSecond: calls.perSecond, seconds };
    await atPoissonArrivals(arrivals, new AbortController().signal, (at) =>
      connections[turn++ % connections.length]!.send(at),
    );
    for (const connection of connections) connection.end();
  }
  const latencies: number[] = [];
  let rejected = 0;
  for (const end of await Promise.all(ends)) {
    for (const latency of end.latencies) latencies.push(latency);
    rejected += end.rejected;
  }
  const tookSeconds = (sharedNow() - startedAt) / 1_000;
  latencies.sort((a, b) => a - b);
  const percentile = (share: number) => latencies[Math.ceil(latencies.length * share) - 1] ?? Number.NaN;
  return {
    requests: latencies.length,
    seconds: tookSeconds,
    rejected,
    medianMs: percentile(0.5),
    p99Ms: percentile(0.99),
  };
}

/** One connection with a number of open calls. It ends when the answers of its calls have arrived after the end of the window. */
class Connection {
  readonly latencies: number[] = [];
  rejected = 0;
  readonly #calls: GrpcCalls;
  readonly #endsAt: number;
  readonly #messages: readonly Buffer[];
  readonly #expected: Buffer;
  readonly #done = Promise.withResolvers<this>();
  /** By the number of the stream: when its call was sent, and whether its answer was as expected. */
  readonly #open = new Map<number, { sentAt: number; isExpected: boolean }>();
  #socket: Socket | undefined;
  #rest: Buffer = Buffer.alloc(0);
  #stream = 1;
  #turn = 0;
  /** Whether no more calls arrive. */
  #hasEnded: boolean;

  constructor(calls: GrpcCalls, endsAt: number) {
    this.#calls = calls;
    this.#endsAt = endsAt;
    this.#messages = calls.messages.map((text) => framed(Buffer.from(text, "hex")));
    this.#expected = Buffer.from(calls.expected, "hex");
    this.#hasEnded = calls.perSecond === undefined;
    this.#turn = Math.floor(Math.random() * this.#messages.length);
  }

  run(port: number): Promise<this> {
    const socket = connect(port, "127.0.0.1");
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.once("error", (error) => this.#done.reject(error));
    socket.once("close", () => this.#done.reject(new Error("The server has closed a connection")));
    const size = Buffer.alloc(4);
    size.writeUInt32BE(WINDOW_BYTES);
    const begin = [PREFACE, frame(SETTINGS, 0, 0), frame(WINDOW_UPDATE, 0, 0, size)];
    if (this.#calls.perSecond === undefined) {
      for (let i = 0; i < this.#calls.streams; i++) begin.push(this.#next(sharedNow()));
    }
    socket.write(Buffer.concat(begin));
    socket.on("data", (chunk) => this.#read(chunk));
    return this.#done.promise;
  }

  /** Sends a call that was due at this time. */
  send(dueAt: number): void {
    this.#socket!.write(this.#next(dueAt));
  }

  /** Ends it after the open calls. */
  end(): void {
    this.#hasEnded = true;
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (!this.#hasEnded || this.#open.size > 0) return;
    this.#socket!.destroy();
    this.#done.resolve(this);
  }

  #next(sentAt: number): Buffer {
    const stream = this.#stream;
    this.#stream += 2;
    this.#open.set(stream, { sentAt, isExpected: false });
    const block = stream === 1 ? firstBlock(this.#calls) : laterBlock(this.#calls);
    const message = this.#messages[this.#turn++ % this.#messages.length]!;
    return Buffer.concat([frame(HEADERS, END_HEADERS, stream, block), frame(DATA, END_STREAM, stream, message)]);
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const sent: Buffer[] = [];
    let at = 0;
    while (bytes.length - at >= HEAD_BYTES) {
      const end = at + HEAD_BYTES + bytes.readUIntBE(at, 3);
      if (bytes.length < end) break;
      const stream = bytes.readUInt32BE(at + 5);
      this.#handle(bytes[at + 3]!, bytes[at + 4]!, stream, bytes.subarray(at + HEAD_BYTES, end), sent);
      at = end;
    }
    this.#rest = bytes.subarray(at);
    if (sent.length > 0) this.#socket!.write(Buffer.concat(sent));
    this.#endIfDone();
  }

  #handle(type: number, flags: number, stream: number, payload: Buffer, sent: Buffer[]): void {
    if (type === SETTINGS && (flags & ACK) === 0) sent.push(frame(SETTINGS, ACK, 0));
    if (type === GOAWAY) this.#done.reject(new Error("The server has ended a connection"));
    const call = this.#open.get(stream);
    if (call === undefined) return;
    if (type === DATA && payload.length > 0) {
      call.isExpected = payload.subarray(PREFIX_BYTES, PREFIX_BYTES + this.#expected.length).equals(this.#expected);
    }
    const isEnd = type === RST_STREAM || ((type === HEADERS || type === DATA) && (flags & END_STREAM) !== 0);
    if (!isEnd) return;
    this.#open.delete(stream);
    const now = sharedNow();
    this.latencies.push(now - call.sentAt);
    if (type !== HEADERS || !call.isExpected) this.rejected++;
    if (this.#calls.perSecond === undefined && now < this.#endsAt) sent.push(this.#next(now));
  }
}

function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  bytes.set(payload, HEAD_BYTES);
  return bytes;
}

function framed(message: Buffer): Buffer {
  const bytes = Buffer.alloc(PREFIX_BYTES + message.length);
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

function headersOf({ method, metadata }: GrpcCalls): [string, string][] {
  return [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", `/${method}`],
    [":authority", "bench"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...Object.entries(metadata),
  ];
}

/** Literal fields that are added to the dynamic table (RFC 7541, section 6.2.1), as gateways send them. */
function firstBlock(calls: GrpcCalls): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(headersOf(calls).flatMap(([name, value]) => [Buffer.from([0x40]), text(name), text(value)]));
}

/** References to these. */
function laterBlock(calls: GrpcCalls): Buffer {
  const count = headersOf(calls).length;
  return Buffer.from(Array.from({ length: count }, (_, i) => 0x80 | (DYNAMIC_FIRST + count - 1 - i)));
}
