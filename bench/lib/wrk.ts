import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { answers, pinned } from "./machine.ts";

const LOAD_CORE = 1;
const CONNECTIONS_STANDARD = 32;
/** Longer than any window, so that a load generator that hangs is ended. */
const GRACE_MS = 10_000;
/** A window that something else ends is cut off after this. */
const WINDOW_SECONDS_MAX = 600;

/** POST requests that one load sends in turn. */
export interface Posts {
  path: string;
  headers: Readonly<Record<string, string>>;
  /** Without line breaks. */
  bodies: readonly string[];
}

export interface WrkOptions {
  connections?: number;
  /** About so many requests a second, at random intervals; omitted: as many as are answered. */
  perSecond?: number;
  /** Whether a request that is refused is part of the load; otherwise it ends the bench. */
  refusable?: boolean;
}

/** What one window of load came to. */
export interface Load {
  requests: number;
  seconds: number;
  /** Requests that were not answered with success. */
  refused: number;
  medianMs: number;
  p99Ms: number;
}

/** A millisecond is as finely as `wrk` waits, so intervals are spread around the mean. */
const delay = (intervalMs: number) => `
function delay()
  return math.random(0, ${Math.round(2 * intervalMs)})
end
`;

/** Sends the bodies round-robin, each request written beforehand, and prints what came of it as JSON. */
const script = (file: string, { path, headers }: Posts, intervalMs: number | undefined) => `
local requests, count, turn = {}, 0, 0
${intervalMs === undefined ? "" : delay(intervalMs)}
function init()
  local headers = ${luaTable(headers)}
  for body in io.lines(${luaText(file)}) do
    count = count + 1
    requests[count] = wrk.format("POST", ${luaText(path)}, headers, body)
  end
end
function request()
  turn = turn % count + 1
  return requests[turn]
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\\n{"requests":%d,"seconds":%f,"refused":%d,"medianMs":%f,"p99Ms":%f}\\n', summary.requests,
    summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`;

/** Load from `wrk`, the same requests every time: from one thread, on a core of its own. */
export class Wrk {
  readonly #folder = mkdtempSync(join(tmpdir(), "latchkey-load-"));
  readonly #script = join(this.#folder, "posts.lua");
  readonly #connections: number;
  readonly #refusable: boolean;

  constructor(posts: Posts, { connections = CONNECTIONS_STANDARD, perSecond, refusable = false }: WrkOptions = {}) {
    this.#connections = connections;
    this.#refusable = refusable;
    const bodies = join(this.#folder, "bodies");
    writeFileSync(bodies, posts.bodies.map((body) => `${body}\n`).join(""));
    writeFileSync(this.#script, script(bodies, posts, perSecond && (connections * 1_000) / perSecond));
  }

  static get isInstalled(): boolean {
    return answers("wrk", ["--version"]);
  }

  /**
   * Sends for so many seconds, or until something is over.
   *
   * @throws when a request failed or was not answered with success, and must not be refused.
   */
  async run(url: string, length: number | Promise<unknown>): Promise<Load> {
    const seconds = typeof length === "number" ? length : WINDOW_SECONDS_MAX;
    const wrk = ["wrk", "--threads", "1", "--connections", String(this.#connections), "--duration", `${seconds}s`];
    const [program, ...args] = pinned(LOAD_CORE, [...wrk, "--script", this.#script, url]);
    const running = promisify(execFile)(program!, args, { timeout: seconds * 1_000 + GRACE_MS });
    // Interrupted, it tells what it has measured so far.
    if (typeof length !== "number") await length.finally(() => running.child.kill("SIGINT"));
    const { stdout } = await running;
    const load = JSON.parse(stdout.trimEnd().split("\n").at(-1)!) as Load;
    if (load.refused > 0 && !this.#refusable) {
      throw new Error(`${load.refused} of ${load.requests} requests failed:\n${stdout}`);
    }
    return load;
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function luaTable(fields: Readonly<Record<string, string>>): string {
  return `{${Object.entries(fields).map(([name, value]) => `[${luaText(name)}] = ${luaText(value)}`)}}`;
}

/** JSON's way of writing a text without control characters is Lua's too. */
function luaText(text: string): string {
  return JSON.stringify(text);
}
