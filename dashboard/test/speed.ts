/**
 * Speed of the dashboard: `npm run bench:dashboard -- [--keys 100000] [--frames 600] [--folder DIR]`.
 *
 * Fills a workspace with `latchkey demo`, opens the API with the most keys in Chromium, and measures
 *
 * - scrolling: frames per second, and the time of the main thread per frame: script, style, layout and painting, from the
 *   event of the scrolling to the end of the frame. Three speeds, in pixels per frame. Further pages of the list are
 *   loaded meanwhile. Target: 60 frames per second, 16 ms per frame.
 * - searching: the time from the call that the last key press causes until its rows are painted. The pause after the last
 *   key press, which waits for another one, is stated apart. Target: 150 ms.
 *
 * `--folder` keeps the data there and uses them again. Run nothing else on the machine: Chromium paints by software here.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Page } from "playwright-core";
import { describeMachine } from "../../bench/lib/machine.ts";
import { wholeNumber } from "../../bench/lib/options.ts";
import { spread, writeSpread } from "../../bench/lib/statistics.ts";
import { run, start } from "../../server/test/process.ts";
import { launchChromium } from "./chromium.ts";
import { signIn } from "./dashboard.ts";

const FRAMES_PER_SECOND = 60;
const FRAME_MS = 16;
const SEARCH_MS = 150;
const ROUNDS = 5;
/** A slow wheel, a fast one, and the scroll bar. */
const SPEEDS = [20, 100, 1_000];

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "100000" },
    frames: { type: "string", default: "600" },
    folder: { type: "string" },
  },
});
const keys = wholeNumber(values, "keys", 1_000, 1_000_000);
const frames = wholeNumber(values, "frames", 10, 100_000);

const folder = values.folder ?? mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const rootKey = await fill(folder);
const server = await start({ directory: folder, settings: { LOG_LEVEL: "info" } });
const browser = await launchChromium();
try {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(`${server.address}/sign-in`);
  await signIn(page, rootKey);
  await page.waitForURL((url) => url.pathname !== "/sign-in");
  const { apiId, count } = await largestApi();
  console.log(`${describeMachine()}, Chromium ${browser.version()}`);
  console.log(`${keys.toLocaleString("en")} keys, ${count.toLocaleString("en")} of them in the API that is shown\n`);
  console.log("scrolling, ms of the main thread per frame: median (min–max), 95 %");
  for (const pixels of SPEEDS) {
    await page.goto(`${server.address}/apis/${apiId}`);
    await page.locator('[data-index="1"]').waitFor();
    report(pixels, await cpuOf(page, () => page.evaluate(scroll, { pixels, frames })));
  }
  console.log("\nsearching, ms from the call until its rows are painted: median (min–max); the pause before the call");
  for (const [what, text] of await texts(apiId)) {
    const rounds: { answered: number; waited: number }[] = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await search(page, apiId, text));
    const answered = spread(rounds.map(({ answered }) => answered));
    const waited = spread(rounds.map(({ waited }) => waited));
    const verdict = answered.median <= SEARCH_MS ? "" : `  over the target of ${SEARCH_MS}`;
    console.log(`  ${what.padEnd(20)} ${writeSpread(answered)}; ${writeSpread(waited)}${verdict}`);
  }
} finally {
  await browser.close();
  await server.kill("SIGTERM");
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
}

/** Fills the folder once. Returns the root key of the workspace. */
async function fill(folder: string): Promise<string> {
  const file = join(folder, "demo.json");
  mkdirSync(folder, { recursive: true });
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")).rootKey;
  const settings = { DATA_DIR: join(folder, "data") };
  const demo = await run(["demo", "--json", "--keys", String(keys)], { directory: folder, settings });
  if (demo.code !== 0) throw new Error(`latchkey demo failed: ${demo.output}`);
  writeFileSync(file, demo.stdout);
  return JSON.parse(demo.stdout).rootKey;
}

async function largestApi(): Promise<{ apiId: string; count: number }> {
  const apis: { id: string }[] = await server.ok("apis.listApis", { limit: 100 }, rootKey);
  const counted = await Promise.all(
    apis.map(async ({ id: apiId }) => ({
      apiId,
      count: (await server.ok("apis.countKeys", { apiId }, rootKey)).count as number,
    })),
  );
  return counted.sort((a, b) => b.count - a.count)[0]!;
}

/** What is searched for: each kind of text that a search finds keys by. */
async function texts(apiId: string): Promise<[string, string][]> {
  const rows = await server.ok("apis.listKeys", { apiId, limit: 100 }, rootKey);
  const row = rows.find(({ name, identity, start }: Row) => name && identity && start);
  return [
    ["a name", row.name],
    ["part of a name", row.name.slice(0, 4)],
    ["an owner", row.identity.externalId],
    ["the start of a key", row.start],
    ["an id", row.keyId],
    ["nothing", "no key has this name"],
  ];
}

interface Row {
  keyId: string;
  name?: string;
  identity?: { externalId: string };
  start: string;
}

interface Frame {
  /** Since the frame before. */
  since: number;
  busy: number;
}

/** Scrolls in the page, one step in each frame. */
async function scroll({ pixels, frames }: { pixels: number; frames: number }): Promise<Frame[]> {
  const measured: Frame[] = [];
  const { port1, port2 } = new MessageChannel();
  let beganAt = 0;
  const begin = () => {
    beganAt ||= performance.now();
  };
  // Before all other listeners, and before the callbacks of the frame.
  window.addEventListener("scroll", begin, { capture: true });
  let direction = 1;
  let before = performance.now();
  for (let index = 0; index < frames; index++) {
    await new Promise<void>((resolve) => {
      requestAnimationFrame((now) => {
        begin();
        const end = document.documentElement.scrollHeight - innerHeight;
        if (scrollY >= end - pixels) direction = -1;
        else if (scrollY <= pixels) direction = 1;
        scrollBy(0, direction * pixels);
        // A message is received after the frame has been painted.
        port1.onmessage = () => {
          measured.push({ since: now - before, busy: performance.now() - beganAt });
          [before, beganAt] = [now, 0];
          resolve();
        };
        port2.postMessage(null);
      });
    });
  }
  window.removeEventListener("scroll", begin, { capture: true });
  return measured.slice(5);
}

/** What a page did, and the CPU time of its main thread meanwhile, in ms: all, scripts, style and layout. */
async function cpuOf(page: Page, work: () => Promise<Frame[]>) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const read = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const of = (name: string) => 1_000 * metrics.find((metric) => metric.name === name)!.value;
    return [of("TaskDuration"), of("ScriptDuration"), of("RecalcStyleDuration") + of("LayoutDuration")];
  };
  const before = await read();
  const measured = await work();
  const after = await read();
  await session.detach();
  return { measured, cpu: after.map((value, index) => (value - before[index]!) / frames) };
}

function report(pixels: number, { measured, cpu }: { measured: readonly Frame[]; cpu: readonly number[] }): void {
  const busy = measured.map(({ busy }) => busy);
  const rate = (1_000 * measured.length) / measured.reduce((sum, { since }) => sum + since, 0);
  const high = busy.toSorted((a, b) => a - b)[Math.floor(busy.length * 0.95)]!;
  const late = busy.filter((time) => time > FRAME_MS).length;
  const slow = rate < FRAMES_PER_SECOND - 1 || high > FRAME_MS ? "  over the target" : "";
  console.log(
    `  ${String(pixels).padStart(5)} pixels: ${rate.toFixed(1)} frames/s, ${writeSpread(spread(busy), 1)}, ${high.toFixed(1)}, ` +
      `${late} of ${busy.length} frames over ${FRAME_MS} ms${slow}\n` +
      `      CPU per frame: ${cpu[0]!.toFixed(1)}, of it scripts ${cpu[1]!.toFixed(1)}, style and layout ${cpu[2]!.toFixed(1)}`,
  );
}

/** Types a text into the empty field and waits until the page has painted what the service finds. */
async function search(page: Page, apiId: string, text: string): Promise<{ answered: number; waited: number }> {
  const found = await server.call("apis.listKeys", { apiId, search: text, order: "desc", limit: 100 }, rootKey);
  const [first] = found.body.data as Row[];
  const shown = first === undefined ? null : (first.name ?? first.keyId);
  const field = page.getByRole("searchbox", { name: "Search keys" });
  // A page that has not read these rows before.
  await page.goto(`${server.address}/apis/${apiId}`);
  await page.waitForLoadState("networkidle");
  const answer = page.evaluate(
    ({ shown, rows }) =>
      new Promise<{ answered: number; waited: number }>((resolve) => {
        let pressedAt = 0;
        // The browser keeps the first 250 entries.
        performance.clearResourceTimings();
        const onInput = ({ timeStamp }: Event) => {
          pressedAt = timeStamp;
        };
        addEventListener("input", onInput, true);
        const look = () => {
          const call = performance
            .getEntriesByType("resource")
            .findLast(({ name, startTime }) => name.endsWith("/apis.listKeys") && startTime >= pressedAt);
          if (pressedAt === 0 || call === undefined) return;
          const table = document.querySelector('[role="table"]');
          const isShown =
            shown === null
              ? table === null && document.body.textContent.includes("No key matches")
              : table?.getAttribute("aria-rowcount") === rows &&
                table.querySelector('[data-index="0"]')?.textContent.includes(shown);
          if (!isShown) return;
          observer.disconnect();
          removeEventListener("input", onInput, true);
          requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () =>
              resolve({ answered: performance.now() - call.startTime, waited: call.startTime - pressedAt });
            port2.postMessage(null);
          });
        };
        const observer = new MutationObserver(look);
        observer.observe(document.body, { childList: true, subtree: true, characterData: true, attributes: true });
        // The entry of a call can come after its rows.
        new PerformanceObserver(look).observe({ type: "resource" });
      }),
    { shown, rows: found.body.pagination.hasMore ? "-1" : String(found.body.data.length + 1) },
  );
  await field.pressSequentially(text, { delay: 30 });
  return answer;
}
