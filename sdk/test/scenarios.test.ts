/**
 * What every client of the service must do, as a list that names no language: `scenarios.json`. Each step calls an
 * operation:
 *
 * - `input`: what is sent; a text `$name` stands for the value that an earlier step saved.
 * - `network`: the first connection is `cut` after the service has executed the call, the service is `silent`, or `away`.
 * - `retryCharges`: calls that charge something are retried.
 * - `circuitBreaker`: whether the client has one. Default: true.
 * - `data`, `error`: members of the answer. `errors`: the type of the error of each repetition. `count`: its number of entries. `attempts`: the number of requests.
 * - `save`: names for members of the answer. `all`: all pages are read. `repeat`: the number of calls.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, describe, it } from "node:test";
import { makeFolder, ROOT_KEY, type Server, start } from "../../server/test/process.ts";
import { TcpProxy } from "../../server/test/tcp-proxy.ts";
import { Latchkey, LatchkeyError, Secret } from "../src/index.ts";

interface Step {
  call: string;
  input: Record<string, unknown>;
  rootKey?: string;
  network?: "cut" | "silent" | "away";
  timeout?: number;
  retryCharges?: boolean;
  /** How often the call is made. */
  repeat?: number;
  /** Whether all pages are read. */
  all?: boolean;
  save?: Record<string, string>;
  data?: Record<string, unknown>;
  count?: number;
  errors?: string[];
  circuitBreaker?: boolean;
  error?: { type: string; status?: number; location?: string; message?: string };
  attempts?: number;
}

const scenarios: { name: string; steps: Step[] }[] = JSON.parse(
  readFileSync(new URL("scenarios.json", import.meta.url), "utf8"),
);

describe("the client against a service", () => {
  const directory = makeFolder({ after });
  let server: Server;
  let proxy: TcpProxy;
  let apiId: string;

  before(async () => {
    server = await start({ directory });
    proxy = await TcpProxy.open(server.address);
    ({ apiId } = await server.ok("apis.createApi", { name: "scenarios" }));
  });
  afterEach(() => {
    proxy.filter = () => "pass";
    proxy.onMuted = () => {};
    proxy.isClosed = false;
  });
  after(async () => {
    await proxy?.close();
    await server?.kill("SIGTERM");
  });

  for (const { name, steps } of scenarios) {
    it(name, async () => {
      const saved: Record<string, unknown> = { apiId };
      for (const step of steps) await run(step, saved);
    });
  }

  function disturb(network: Step["network"]): void {
    if (network === "silent") proxy.filter = () => "drop";
    if (network === "away") {
      proxy.isClosed = true;
      proxy.cut();
    }
    if (network === "cut") {
      proxy.filter = () => "mute";
      proxy.onMuted = () => {
        proxy.filter = () => "pass";
        proxy.cut();
      };
    }
  }

  async function run(step: Step, saved: Record<string, unknown>): Promise<void> {
    disturb(step.network);
    let attempts = 0;
    const latchkey = new Latchkey({
      url: proxy.url,
      rootKey: step.rootKey ?? ROOT_KEY,
      timeout: step.timeout ?? 10_000,
      retryCharges: step.retryCharges,
      circuitBreaker: step.circuitBreaker,
      onRequest: () => attempts++,
    });
    const [namespace, verb] = step.call.split(".") as [string, string];
    // biome-ignore lint/suspicious/noExplicitAny: the list names operations and members at run time.
    const method = (latchkey as any)[namespace][verb];
    const input = substitute(step.input, saved);

    for (let i = 0; i < (step.repeat ?? 1); i++) {
      const call = step.all ? collect(method.all(input)) : method(input);
      const error = step.errors ? { type: step.errors[i]! } : step.error;
      if (error) await assert.rejects(call, (thrown) => matches(thrown, error));
      else check(await call, step, saved);
    }
    if (step.attempts !== undefined) assert.equal(attempts, step.attempts);
  }
});

// biome-ignore lint/suspicious/noExplicitAny: the scenario says which members there are.
function check(answer: any, { data, save = {}, count, all }: Step, saved: Record<string, unknown>): void {
  const actual = all ? answer : answer.data;
  if (!all) assert.match(answer.requestId, /^req_/);
  if (data) assert.partialDeepStrictEqual(actual, substitute(data, saved));
  if (count !== undefined) {
    // biome-ignore lint/suspicious/noExplicitAny: see above.
    const ids = actual.map((entry: any) => entry.keyId ?? entry.overrideId);
    assert.equal(new Set(ids).size, count);
    assert.equal(ids.length, count);
  }
  for (const [member, name] of Object.entries(save)) {
    assert(actual[member] !== undefined, `the answer has no ${member}`);
    saved[name] = actual[member];
  }
}

function matches(error: unknown, { type, status, location, message }: NonNullable<Step["error"]>): true {
  assert(error instanceof LatchkeyError, String(error));
  assert.equal(error.type, type);
  assert.equal(error.status, status);
  if (location !== undefined)
    assert.deepEqual(
      error.errors.map((each) => each.location),
      [location],
    );
  if (message !== undefined) assert.equal(error.message, message);
  if (status !== undefined) assert.match(error.requestId ?? "", /^req_/);
  return true;
}

async function collect(entries: AsyncIterable<unknown>): Promise<unknown[]> {
  const all = [];
  for await (const entry of entries) all.push(entry);
  return all;
}

/** The value with each text `$name` replaced by what was saved under the name. */
function substitute<T>(value: T, saved: Record<string, unknown>): T {
  if (typeof value === "string" && value.startsWith("$")) {
    const name = value.slice(1);
    assert(name in saved, `no step saved ${name}`);
    return saved[name] as T;
  }
  if (value instanceof Secret || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => substitute(each, saved)) as T;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, substitute(each, saved)])) as T;
}
