import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { answers, pinned } from "./machine.ts";

const LOAD_CORE = 1;
const CONNECTIONS_DEFAULT = 32;
/** Time beyond the window after which a hanging load generator is killed. */
const GRACE_MS = 10_000;

/** POST requests that are sent in turn. */
export interface Posts {
  path: string;
  headers: Readonly<Record<string, string>>;
  bodies: readonly string[];
  /** Each answer with a hold is followed by a settlement of it. */
  settlements?: { path: string; credits: number };
}

/** The result of one window. */
export interface Load {
  requests: number;
  seconds: number;
  /** Requests without a successful answer. */
  rejected: number;
  medianMs: number;
  p99Ms: number;
}

/** A script for wrk: formats each request once, sends them in turn, and prints the result as JSON. */
const script = (file: string, { path, headers, settlements }: Posts) => `
local requests, count, turn = {}, 0, 0
local headers = ${luaTable(headers)}
function init()
  for body in io.lines(${luaText(file)}) do
    count = count + 1
    requests[count] = wrk.format("POST", ${luaText(path)}, headers, body)
  end
end
${settlements ? settling(settlements) : ""}
function request()
  ${settlements ? "local followUp = settlement() if followUp then return followUp end" : ""}
  turn = turn % count + 1
  return requests[turn]
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\\n{"requests":%d,"seconds":%f,"rejected":%d,"medianMs":%f,"p99Ms":%f}\\n', summary.requests,
    summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`;

/** The part of the script that makes a settlement of each hold in an answer. */
const settling = ({ path, credits }: NonNullable<Posts["settlements"]>) => `
local open = {}
function response(status, _, body)
  local holdId = body:match('"hold":{"holdId":"([%w_]+)"')
  if holdId then open[#open + 1] = holdId end
end
local function settlement()
  local holdId = table.remove(open)
  if not holdId then return nil end
  return wrk.format("POST", ${luaText(path)}, headers, '{"holdId":"' .. holdId .. '","credits":${credits}}')
end`;

/** Load from `wrk`: the same requests in each window, from one thread on a core of its own. */
export class Wrk {
  readonly #folder = mkdtempSync(join(tmpdir(), "latchkey-load-"));
  readonly #script = join(this.#folder, "posts.lua");
  readonly #connections: number;
  readonly #core: number;

  /** Bodies must not contain line breaks. */
  constructor(posts: Posts, connections = CONNECTIONS_DEFAULT, core = LOAD_CORE) {
    this.#connections = connections;
    this.#core = core;
    const bodies = join(this.#folder, "bodies");
    writeFileSync(bodies, posts.bodies.map((body) => `${body}\n`).join(""));
    writeFileSync(this.#script, script(bodies, posts));
  }

  static get isInstalled(): boolean {
    return answers("wrk", ["--version"]);
  }

  /** Ends a bench that cannot run without wrk. */
  static require(): void {
    if (Wrk.isInstalled) return;
    console.error("This bench needs wrk. On Debian and Ubuntu: apt-get install wrk.");
    process.exit(1);
  }

  /** @throws if a request failed or had no successful answer. */
  async run(url: string, seconds: number): Promise<Load> {
    const load = await this.measure(url, seconds);
    if (load.rejected > 0) throw new Error(`${load.rejected} of ${load.requests} requests failed`);
    return load;
  }

  /** Counts requests that failed or had no successful answer too. */
  async measure(url: string, seconds: number): Promise<Load> {
    const wrk = ["wrk", "--threads", "1", "--connections", String(this.#connections), "--duration", `${seconds}s`];
    const [program, ...args] = pinned(this.#core, [...wrk, "--script", this.#script, url]);
    const { stdout } = await promisify(execFile)(program!, args, { timeout: seconds * 1_000 + GRACE_MS });
    return JSON.parse(stdout.trimEnd().split("\n").at(-1)!);
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function luaTable(fields: Readonly<Record<string, string>>): string {
  return `{${Object.entries(fields).map(([name, value]) => `[${luaText(name)}] = ${luaText(value)}`)}}`;
}

/** For strings without control characters, JSON is valid Lua. */
function luaText(text: string): string {
  return JSON.stringify(text);
}
