/**
 * CPU of a call without sockets: `node server/bin/node.js bench/calls.ts [--keys 1000] [--calls 400000] [--windows 5]
 * [--only verify|limit] [--limited] [--redis] [--no-analytics]`.
 *
 * The real service, in this process. Requests arrive on 32 connections in memory, each after the answer to the one before;
 * what is written is made flat, as a socket would. CPU is that of this thread and of the whole process. This is less noisy
 * than a load over sockets, which take more than half of a call's CPU. `--limited`: keys with a limit; `--redis`: counted in
 * Redis. `--keys`: different keys and identifiers.
 */
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { setImmediate as setTurn } from "node:timers";
import { setImmediate } from "node:timers/promises";
import { parseArgs } from "node:util";
import { systemClock } from "../engine/src/clock/system.ts";
import { systemRandom } from "../engine/src/random/system.ts";
import { openProcessLog } from "../server/src/log/log.ts";
import { readConfig } from "../server/src/platform/config/config.ts";
import { readSecrets } from "../server/src/platform/config/secrets.ts";
import { openService } from "../server/src/service/service.ts";
import { startRedis } from "../server/test/services/redis.ts";
import { createKeys, LIMIT_PATH, limitBodies, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { wholeNumber } from "./lib/options.ts";
import { spread, writeSpread } from "./lib/statistics.ts";

const CONNECTIONS = 32;
const LIMIT = { name: "calls", limit: 1e9, duration: 3_600_000, autoApply: true };

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "1000" },
    calls: { type: "string", default: "400000" },
    windows: { type: "string", default: "5" },
    only: { type: "string" },
    limited: { type: "boolean", default: false },
    redis: { type: "boolean", default: false },
    "no-analytics": { type: "boolean", default: false },
  },
});
const keyCount = wholeNumber(values, "keys", 1, 1_000_000);
const calls = wholeNumber(values, "calls", 1_000, 100_000_000);
const windows = wholeNumber(values, "windows", 1, 100);

/** A connection in memory, with those members of a socket that the lane uses. */
class FakeSocket extends EventEmitter {
  readonly remoteAddress = "127.0.0.1";
  writable = true;
  writableNeedDrain = false;
  writableLength = 0;
  destroyed = false;
  bytesRead = 1;
  answers = 0;
  last = "";
  onAnswer: (() => void) | undefined;
  static readonly #out = Buffer.alloc(64 * 1024);

  write(text: string): boolean {
    this.answers++;
    FakeSocket.#out.write(text, 0, "latin1");
    this.last = text;
    this.onAnswer?.();
    return true;
  }
  isPaused(): boolean {
    return false;
  }
  setTimeout(): this {
    return this;
  }
  resume(): void {}
  pause(): void {}
  unshift(): void {
    throw new Error("not expected");
  }
  destroy(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

const folder = mkdtempSync(join(tmpdir(), "latchkey-calls-"));
const redis = values.redis ? await startRedis() : undefined;
const settings: Record<string, string> = {
  DATA_DIR: folder,
  PORT: "0",
  LOG_LEVEL: "error",
  ANALYTICS: values["no-analytics"] ? "off" : "on",
};
const texts = new Map(Object.entries(settings));
const config = readConfig(texts);
const secrets = readSecrets(new Map(Object.entries({ ROOT_KEY, ...(redis && { REDIS_URL: redis.url }) })));
const { log } = openProcessLog("error");
const service = await openService(config, secrets, { clock: systemClock, random: systemRandom, log });
try {
  const sockets = Array.from({ length: CONNECTIONS }, () => {
    const socket = new FakeSocket();
    service.accept(socket as unknown as Duplex);
    return socket;
  });
  const send = async (path: string, body: string, socket: FakeSocket): Promise<string> => {
    const before = socket.answers;
    socket.emit("data", requestOf(path, body));
    while (socket.answers === before) await setImmediate();
    return socket.last.slice(socket.last.indexOf("\r\n\r\n") + 4);
  };
  const { port } = await service.listen();
  const url = `http://127.0.0.1:${port}`;
  if (values.only !== "limit") {
    const options = values.limited ? { ratelimits: [LIMIT] } : {};
    const keys = await createKeys(url, keyCount, options);
    const bodies = keys.map((key) => JSON.stringify({ key }));
    await measure("verify", VERIFY_PATH, bodies, '"valid":true', send, sockets);
  }
  if (values.only !== "verify") {
    await measure("limit", LIMIT_PATH, limitBodies(keyCount), '"success":true', send, sockets);
  }
} finally {
  await service.stop();
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();

function requestOf(path: string, body: string): Buffer {
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:4000\r\nContent-Type: application/json\r\nAuthorization: Bearer ${ROOT_KEY}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

async function measure(
  title: string,
  path: string,
  bodies: readonly string[],
  expected: string,
  send: (path: string, body: string, socket: FakeSocket) => Promise<string>,
  sockets: readonly FakeSocket[],
) {
  for (const [i, body] of bodies.entries()) {
    const answer = await send(path, body, sockets[i % CONNECTIONS]!);
    if (!answer.includes(expected)) throw new Error(answer);
  }
  const requests = bodies.map((body) => requestOf(path, body));
  let next = 0;
  /** Each connection sends its next request when the one before is answered. */
  const run = (count: number) =>
    new Promise<void>((resolve) => {
      let [sent, answered] = [0, 0];
      const sendNext = (socket: FakeSocket) => {
        if (sent++ >= count) return;
        socket.emit("data", requests[next]!);
        next = next + 1 === requests.length ? 0 : next + 1;
      };
      let waiting: FakeSocket[] = [];
      const sendAll = () => {
        const these = waiting;
        waiting = [];
        for (const socket of these) sendNext(socket);
      };
      for (const socket of sockets) {
        socket.onAnswer = () => {
          if (++answered === count) resolve();
          else if (waiting.push(socket) === 1) setTurn(sendAll);
        };
      }
      for (const socket of sockets) sendNext(socket);
    });
  await run(calls);
  const thread: number[] = [];
  const all: number[] = [];
  const wall: number[] = [];
  for (let window = 0; window < windows; window++) {
    const [before, beforeAll, startedAt] = [process.threadCpuUsage(), process.cpuUsage(), performance.now()];
    const answered = sockets.reduce((sum, { answers }) => sum + answers, 0);
    await run(calls);
    const [after, afterAll] = [process.threadCpuUsage(before), process.cpuUsage(beforeAll)];
    const count = sockets.reduce((sum, { answers }) => sum + answers, 0) - answered;
    thread.push((after.user + after.system) / count);
    all.push((afterAll.user + afterAll.system) / count);
    wall.push(((performance.now() - startedAt) * 1_000) / count);
  }
  console.log(
    `${title}, ${bodies.length} bodies: this thread ${writeSpread(spread(thread), 2)} µs, process ${writeSpread(spread(all), 2)}, wall ${writeSpread(spread(wall), 2)}`,
  );
}
