/** `examples/llm-gateway`, as somebody runs it who has copied it, with its mock as the upstream: do the books add up? */
import assert from "node:assert/strict";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CommandLine } from "./command-line.ts";
import { repository } from "./deploy/tools.ts";
import { installLibraries } from "./guide.ts";
import { eventually, makeFolder, Program, ROOT_KEY, type Server, start } from "./process.ts";

/** In micro-dollars for a thousand tokens of the model `small`, as in src/prices.ts. */
const [INPUT, OUTPUT] = [150, 600];
const PLENTY = 1_000_000;

describe("the example llm-gateway", () => {
  const folder = makeFolder({ after });
  const commandLine = new CommandLine();
  let service: Server;
  let apiId: string;
  let environment: Record<string, string>;
  let mock: Program;
  let gateway: Program;
  let origin: string;

  before(async () => {
    cpSync(join(repository, "examples/llm-gateway"), folder, { recursive: true });
    installLibraries(folder);
    service = await start({ directory: folder });
    const applied = await commandLine.run({
      args: ["apply", "-f", "latchkey.yaml"],
      environment: { HOME: folder, LATCHKEY_URL: service.address, LATCHKEY_ROOT_KEY: ROOT_KEY },
      directory: folder,
    });
    assert.equal(applied.code, 0, applied.stderr);
    apiId = (await service.ok("apis.listApis", {}))[0].id;
    const [upstream, url] = await startProgram("mock.ts", { WORD_MS: "20" });
    mock = upstream;
    environment = {
      LATCHKEY_URL: service.address,
      LATCHKEY_ROOT_KEY: /^ {2}(lk_root_\w+)$/m.exec(applied.stdout)![1]!,
      UPSTREAM_URL: url,
    };
    [gateway, origin] = await startProgram("main.ts", environment);
  });
  after(async () => {
    for (const program of [gateway, mock, service]) await program?.kill("SIGTERM");
    await commandLine.close();
  });

  async function startProgram(file: string, variables: Record<string, string>): Promise<[Program, string]> {
    const program = new Program([join(folder, "src", file)], {
      directory: folder,
      environment: { PORT: "0", ...variables },
    });
    let address: string | undefined;
    await eventually(`${file} to listen`, () => {
      assert(!program.hasEnded, program.output);
      address = /on (http:\S+)/.exec(program.stdout)?.[1];
      return address !== undefined;
    });
    return [program, address!];
  }

  /** An organisation with a team and a key of this team, each with its own balance. */
  class Payer {
    readonly key: string;
    readonly #keyId: string;
    readonly #budgets: string[];

    constructor(key: string, keyId: string, budgets: string[]) {
      this.key = key;
      this.#keyId = keyId;
      this.#budgets = budgets;
    }

    static async create({
      organisation = PLENTY,
      team = PLENTY,
      credits = PLENTY,
      streams = 100,
    } = {}): Promise<Payer> {
      const parent = await service.ok("budgets.createBudget", { name: "organisation", remaining: organisation });
      const { budgetId: parentId } = parent;
      const { budgetId } = await service.ok("budgets.createBudget", { name: "team", remaining: team, parentId });
      const { key, keyId } = await service.ok("keys.createKey", {
        apiId,
        budgetId,
        credits: { remaining: credits },
        concurrency: [{ name: "streams", limit: streams }],
      });
      return new Payer(key, keyId, [parentId, budgetId]);
    }

    /** What the balances of the key, the team and the organisation hold and have spent. The books of each add up. */
    async books(): Promise<{ spent: number; held: number }> {
      const budgets = await Promise.all(this.#budgets.map((budgetId) => service.ok("budgets.getBudget", { budgetId })));
      for (const { totals, remaining, held } of budgets) {
        assert.equal(totals.granted, totals.spent + held + remaining + totals.lapsed);
      }
      const { credits } = await service.ok("keys.getKey", { keyId: this.#keyId });
      const [{ spent, held }] = budgets;
      for (const budget of budgets) assert.deepEqual([budget.spent, budget.held], [spent, held]);
      assert.equal(PLENTY - credits.remaining, spent + held);
      return { spent, held };
    }

    /** What was spent, when nothing is held any more. */
    async spent(): Promise<number> {
      let books = { spent: 0, held: 0 };
      await eventually("holds to end", async () => {
        // Between the reads of two balances a hold may end.
        books = await this.books().catch(() => ({ spent: 0, held: -1 }));
        return books.held === 0;
      });
      return books.spent;
    }
  }

  const question = (tokens: number) => ({
    model: "small",
    max_tokens: tokens,
    messages: [{ role: "user", content: "hi" }],
  });

  function ask(key: string, body: object, signal?: AbortSignal): Promise<Response> {
    return fetch(`${origin}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    });
  }

  const bytes = JSON.stringify(question(1).messages).length;
  const cost = (tokens: number) => Math.ceil((Math.ceil(bytes / 4) * INPUT + tokens * OUTPUT) / 1_000);
  const estimate = (tokens: number) => Math.ceil((bytes * INPUT + tokens * OUTPUT) / 1_000);
  const wordsIn = (text: string) => text.split('"content":"word"').length - 1;

  /** Reads words until there are as many, and then until the stream ends or breaks. Returns how many arrived. */
  async function read(response: Response, until = Number.POSITIVE_INFINITY): Promise<number> {
    let text = "";
    try {
      for await (const part of response.body!) {
        text += Buffer.from(part).toString();
        if (wordsIn(text) >= until) break;
      }
    } catch {
      // It broke off.
    }
    return wordsIn(text);
  }

  it("charges the key, the team and the organisation for what an answer did cost", async () => {
    const payer = await Payer.create();
    const response = await ask(payer.key, question(7));
    assert.equal(response.status, 200);
    const { usage } = (await response.json()) as { usage: { completion_tokens: number } };
    assert.equal(usage.completion_tokens, 7);
    assert.equal(await payer.spent(), cost(7));
    assert.equal(await read(await ask(payer.key, { ...question(9), stream: true })), 9);
    assert.equal(await payer.spent(), cost(7) + cost(9));
  });

  it("charges nothing for what is refused or fails", async () => {
    const payer = await Payer.create();
    for (const body of [
      {},
      [],
      { ...question(1), model: "toString" },
      { ...question(1), messages: [] },
      { ...question(1), messages: [{ role: "user", content: 1 }] },
      { ...question(1), stream: "yes" },
      ...[0, -1, 1.5, 1e9, "1"].map((max_tokens) => ({ ...question(1), max_tokens })),
    ]) {
      assert.equal((await ask(payer.key, body)).status, 400, JSON.stringify(body));
    }
    for (const stream of [false, true]) {
      const failing = { ...question(5), messages: [{ role: "user", content: "fail" }], stream };
      assert.equal((await ask(payer.key, failing)).status, 502);
    }
    const unknown = await ask("llm_unknown", question(1));
    assert.equal(unknown.status, 401);
    assert.match(((await unknown.json()) as { error: { message: string } }).error.message, /NOT_FOUND/);
    assert.equal((await fetch(`${origin}/v1/nothing`)).status, 404);
    assert.equal(await payer.spent(), 0);
    // The gateway closes the connection without having read the whole body: no other request may use it.
    const headers = { authorization: `Bearer ${payer.key}`, connection: "close" };
    const long = await fetch(`${origin}/v1/chat/completions`, { method: "POST", headers, body: "x".repeat(300_000) });
    assert.equal(long.status, 413);
  });

  it("lets exactly as many streams begin as each balance covers", async () => {
    const tokens = 200;
    for (const name of ["organisation", "team", "credits"] as const) {
      const payer = await Payer.create({ [name]: 3 * estimate(tokens) });
      const leave = new AbortController();
      const asked = Array.from({ length: 8 }, () =>
        ask(payer.key, { ...question(tokens), stream: true }, leave.signal),
      );
      const statuses = (await Promise.all(asked)).map(({ status }) => status);
      assert.deepEqual(statuses.sort(), [200, 200, 200, 402, 402, 402, 402, 402], name);
      leave.abort();
    }
  });

  it("limits the streams that run at once", async () => {
    const payer = await Payer.create({ streams: 2 });
    const leave = new AbortController();
    const stream = () => ask(payer.key, { ...question(200), stream: true }, leave.signal);
    assert.deepEqual([(await stream()).status, (await stream()).status], [200, 200]);
    const third = await stream();
    assert.equal(third.status, 429);
    assert(Number(third.headers.get("retry-after")) > 0);
    leave.abort();
    await payer.spent();
    assert.equal(await read(await ask(payer.key, { ...question(1), stream: true })), 1);
  });

  it("charges what was sent to clients that hang up", async () => {
    const payer = await Payer.create();
    const received = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const leave = new AbortController();
        const response = await ask(payer.key, { ...question(200), stream: true }, leave.signal);
        const words = await read(response, i);
        leave.abort();
        return words;
      }),
    );
    const spent = await payer.spent();
    const least = received.reduce((sum, words) => sum + cost(words), 0);
    assert(spent >= least, `${spent} spent, ${least} received`);
    // The gateway sends words for as long as it has not noticed.
    assert(spent < 20 * cost(200), `${spent} spent`);
    assert(received.every((words) => words < 200));
  });

  it("charges all that was held when the gateway is killed, and goes on", async () => {
    const payer = await Payer.create({ streams: 5 });
    const responses = await Promise.all(
      Array.from({ length: 5 }, () => ask(payer.key, { ...question(200), stream: true })),
    );
    const reading = responses.map((response) => read(response));
    await Promise.all(responses.map(({ status }) => assert.equal(status, 200)));
    await gateway.kill("SIGKILL");
    const received = await Promise.all(reading);
    assert(received.every((words) => words < 200));
    assert.deepEqual(await payer.books(), { spent: 0, held: 5 * estimate(200) });

    [gateway, origin] = await startProgram("main.ts", environment);
    // Nobody extends the holds: they expire, and the streams are free again.
    assert.equal(await payer.spent(), 5 * estimate(200));
    assert.equal(await read(await ask(payer.key, { ...question(3), stream: true })), 3);
    assert.equal(await payer.spent(), 5 * estimate(200) + cost(3));
  });

  it("needs the versions that this repository has", () => {
    const manifest = (path: string) => JSON.parse(readFileSync(join(repository, path), "utf8"));
    const { dependencies, devDependencies } = manifest("examples/llm-gateway/package.json");
    const { "@latchkey/sdk": _, ...used } = { ...dependencies, ...devDependencies };
    const present = { ...manifest("package.json").devDependencies, ...manifest("sdk/package.json").devDependencies };
    for (const [name, version] of Object.entries(used)) assert.equal(version, present[name], name);
  });
});
