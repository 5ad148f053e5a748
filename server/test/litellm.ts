/**
 * `npm run test:litellm`: examples/litellm-proxy with the proxy of LiteLLM from PyPI, in a virtual environment in the cache.
 * Models have LiteLLM's mocked answers; one has an upstream of this test, which can break off and be slow.
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parse, stringify } from "yaml";
import { systemClock } from "../../engine/src/clock/system.ts";
import { busyness } from "./busyness.ts";
import { CommandLine } from "./command-line.ts";
import { repository } from "./deploy/tools.ts";
import { eventually, Program, ROOT_KEY, start } from "./process.ts";
import { pythonEnvironment } from "./python-environment.ts";
import { freePort } from "./services/free-port.ts";

const example = join(repository, "examples/litellm-proxy");
const requirements = join(repository, "server/test/litellm-requirements.txt");
// Micro-dollars: 10 tokens of the prompt and 20 of the answer, in LiteLLM's mocked answers and in its estimate of "hi".
const COST = 14;
const START_MAX_MS = 60_000;

const [required] = readFileSync(join(example, "requirements.txt"), "utf8").split("\n");
const [name, version] = required!.split("[proxy]==");
assert(readFileSync(requirements, "utf8").includes(`\n${name}==${version}\n`), "the test installs another LiteLLM");
const programs = pythonEnvironment("litellm", requirements);

const folder = mkdtempSync(join(tmpdir(), "latchkey-test-litellm-"));
const commandLine = new CommandLine();
const upstream = createServer((request, response) => {
  let text = "";
  request.setEncoding("utf8").on("data", (part) => {
    text += part;
  });
  request.on("end", () => answer(text === "" ? "" : JSON.parse(text).messages[0].content, response));
});
/** The answers of the upstream that are under way. */
const streams: ServerResponse[] = [];

try {
  cpSync(example, folder, { recursive: true });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  writeConfig(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`);

  const service = await start({ directory: folder });
  const applied = await commandLine.run({
    args: ["apply", "-f", "latchkey.yaml"],
    environment: { HOME: folder, LATCHKEY_URL: service.address, LATCHKEY_ROOT_KEY: ROOT_KEY },
    directory: folder,
  });
  assert.equal(applied.code, 0, applied.stderr);
  const rootKey = /^ {2}(lk_root_\w+)$/m.exec(applied.stdout)![1]!;
  const [api] = await service.ok("apis.listApis", {});
  const budgets: { name: string; budgetId: string }[] = await service.ok("budgets.listBudgets", {});
  const { budgetId } = budgets.find((budget) => budget.name === "search")!;
  // One slot for each of the calls at once, and one for a list of models: none may be left behind.
  const concurrency = [{ name: "requests", limit: 31 }];
  const { key } = await service.ok("keys.createKey", { apiId: api.id, name: "ada", budgetId, concurrency });

  const port = await freePort();
  const proxy = new Program(["--config", "config.yaml", "--host", "127.0.0.1", "--port", `${port}`], {
    directory: folder,
    program: join(programs, "litellm"),
    environment: {
      LATCHKEY_URL: service.address,
      LATCHKEY_ROOT_KEY: rootKey,
      PYTHONPATH: join(repository, "clients/python/src"),
      LITELLM_MASTER_KEY: `sk-${"0123456789abcdef".repeat(4)}`,
      // Its own prices: the proxy otherwise downloads newer ones.
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
    },
  });
  const address = `http://127.0.0.1:${port}`;
  const deadline = systemClock.monotonic() + START_MAX_MS * busyness();
  while (!/Uvicorn running/.test(proxy.output)) {
    assert(!proxy.hasEnded && systemClock.monotonic() < deadline, `The proxy does not listen:\n${proxy.output}`);
    await setTimeout(100);
  }

  /** Sends a request of a client. */
  function ask(body: object, init: RequestInit = {}, path = "/v1/chat/completions"): Promise<Response> {
    return fetch(address + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "gpt-4o-mini",
        messages: [{ role: "user", content: "hi" }],
        max_tokens: 20,
        ...body,
      }),
      ...init,
    });
  }
  /** Asks the upstream of this test. */
  const askUpstream = (content: string, init?: RequestInit) =>
    ask({ model: "upstream", stream: true, messages: [{ role: "user", content }] }, init);

  /** Expects what the budget of the team and that of the company have spent and hold. */
  let spent = 0;
  async function charged(what: string, amount: number, held = 0): Promise<void> {
    spent += amount;
    let seen: unknown;
    await eventually(`${what}: ${spent} spent, ${held} held`, async () => {
      const all = await Promise.all(budgets.map((one) => service.ok("budgets.getBudget", { budgetId: one.budgetId })));
      seen = all.map((budget) => [budget.spent, budget.held]);
      for (const { totals, remaining, held } of all) {
        assert.equal(totals.granted, totals.spent + held + remaining + totals.lapsed);
      }
      return all.every((budget) => budget.spent === spent && budget.held === held);
    }).catch((error) => assert.fail(`${error.message} Seen: ${JSON.stringify(seen)}\n${proxy.output.slice(-8_000)}`));
  }
  const statusOf = async (response: Promise<Response>) => {
    const { status } = await response;
    return status;
  };

  // What a call costs.
  const passed = await ask({});
  assert.equal(passed.status, 200);
  assert.match(await passed.text(), /"total_tokens":30\b/);
  await charged("an answer", COST);
  assert.match(await (await ask({ stream: true })).text(), /data: \[DONE\]\s*$/);
  // 8 tokens of the prompt and 4 of the answer, which LiteLLM counts itself here: 3.6 micro-dollars.
  await charged("a stream", 4);
  await ask({ "no-log": true });
  await charged("a request that asks not to be logged", COST);
  await ask({ metadata: { user_api_key_metadata: { latchkey_hold_id: "hold_of_somebody" } } });
  await charged("a request with the id of a hold", COST);

  // What costs nothing.
  assert.equal(await statusOf(ask({ model: "failing" })), 500);
  await charged("an upstream that fails", 0);
  assert.equal(await statusOf(askUpstream("fail")), 500);
  await charged("a stream that fails before it begins", 0);
  for (const [status, body] of [
    [400, { model: "unpriced" }],
    [400, { model: "unknown" }],
    [400, { max_tokens: -100 }],
    [400, { model: "gpt-4o-mini,upstream" }],
    [400, { fallbacks: ["upstream"] }],
    [400, { messages: undefined }],
  ] as const) {
    assert.equal(await statusOf(ask(body)), status, JSON.stringify(body));
  }
  for (const path of ["/key/generate", "/v1/images/generations", "/openai/deployments/gpt-4o-mini/chat/completions"]) {
    assert.equal(await statusOf(ask({}, {}, path)), 403, path);
  }
  assert.equal(await statusOf(fetch(`${address}/v1/models`, { headers: { authorization: `Bearer ${key}` } })), 200);
  for (const headers of [{}, { authorization: "Bearer llm_unknown" }]) {
    assert.equal(await statusOf(ask({}, { headers })), 401);
  }
  await charged("refused requests", 0);

  // What was sent is charged: 8 tokens of the prompt and 5 of the answer, 4.2 micro-dollars.
  await readWords(5, await askUpstream("5"));
  streams.at(-1)!.destroy();
  await charged("a stream that the upstream breaks off", 5);
  const client = new AbortController();
  await readWords(5, await askUpstream("5", { signal: client.signal }));
  await charged("a stream that is under way", 0, COST);
  client.abort();
  await charged("a client that hangs up in the middle", 5);
  await eventually("the upstream to be left", () => streams.every(({ closed }) => closed));

  // LiteLLM reports nothing about a stream that its client leaves before the first word. The hold ends at its expiry.
  const early = new AbortController();
  const left = askUpstream("0", { signal: early.signal }).catch(() => undefined);
  await eventually("the request to be upstream", () => streams.some(({ closed }) => !closed));
  early.abort();
  await left;
  await eventually("the upstream to be left", () => streams.every(({ closed }) => closed));
  await charged("a client that hangs up before the first word", 0, COST);
  let open: { holdId: string; onExpiry: string }[] = [];
  await eventually("the hold of the list of models to expire", async () => {
    open = await service.ok("holds.listHolds", { state: "open" });
    return open.length === 1;
  });
  assert.equal(open[0]!.onExpiry, "charge");
  await service.ok("holds.releaseHold", { holdId: open[0]!.holdId });

  // Exactly as many as the budget has.
  await service.ok("budgets.updateCredits", { budgetId, operation: "set", value: 10 * COST });
  const statuses = await Promise.all(Array.from({ length: 30 }, () => statusOf(ask({}))));
  assert.deepEqual(
    [200, 402].map((status) => statuses.filter((one) => one === status).length),
    [10, 20],
  );
  await charged("10 of 30 calls", 10 * COST);

  // Without the service, nothing passes.
  await service.kill("SIGTERM");
  assert.equal(await statusOf(ask({})), 503);
  await proxy.kill("SIGTERM");
  process.stdout.write(
    `LiteLLM ${version}: answers, failures, broken streams, and 10 of 30 calls with a budget for 10\n`,
  );
} finally {
  upstream.closeAllConnections();
  upstream.close();
  await commandLine.close();
  rmSync(folder, { recursive: true, force: true });
}

/** The configuration of the example, with other models. */
function writeConfig(base: string): void {
  const file = join(folder, "config.yaml");
  const model = (model_name: string, params: object) => ({
    model_name,
    litellm_params: { model: "openai/gpt-4o-mini", api_key: "none", ...params },
  });
  const config = parse(readFileSync(file, "utf8"));
  config.model_list = [
    model("gpt-4o-mini", { mock_response: "Forty-two." }),
    model("failing", { mock_response: "litellm.InternalServerError" }),
    model("unpriced", { model: "openai/unpriced", mock_response: "Forty-two." }),
    model("upstream", { api_base: base }),
  ];
  writeFileSync(file, stringify(config));
}

/** Streams as many words as the question says, and then nothing. `fail` fails. */
function answer(question: string, response: ServerResponse): void {
  if (question === "fail") return void response.writeHead(500).end("{}");
  streams.push(response);
  response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  const choices = [{ index: 0, delta: { role: "assistant", content: "word" }, finish_reason: null }];
  const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "gpt-4o-mini", choices };
  response.write(`data: ${JSON.stringify(chunk)}\n\n`.repeat(Number(question)));
}

/** Waits until a client has as many words. */
async function readWords(count: number, response: Response): Promise<void> {
  const reader = response.body!.getReader();
  for (let text = ""; text.split("word").length <= count; )
    text += Buffer.from((await reader.read()).value!).toString();
}
