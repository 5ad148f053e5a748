import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { build, type Rolldown } from "vite";
import { launchChromium } from "./chromium.ts";

const HEIGHT = 900;
const ROW = 36;
/** Rows that are rendered above and below those in the window. */
const MARGIN = 6;

declare const takeRendered: () => Record<string, number>;

describe("the rows of a table", () => {
  let browser: Browser;
  let page: Page;

  before(async () => {
    const script = await bundle("table-page.ts");
    browser = await launchChromium();
    page = await browser.newPage({ viewport: { width: 1440, height: HEIGHT } });
    await page.setContent("<!doctype html><style>.absolute{position:absolute}.relative{position:relative}</style>");
    await page.addScriptTag({ content: script });
    await page.locator('[data-index="20"]').waitFor();
    await frame(page);
  });
  after(() => browser.close());

  it("are rendered once each while they are scrolled into the window", async () => {
    await page.evaluate(() => takeRendered());
    const steps = 40;
    for (let step = 0; step < steps; step++) {
      await page.evaluate((pixels) => scrollBy(0, pixels), 2 * ROW);
      await frame(page);
    }
    const rendered = await page.evaluate(() => takeRendered());
    assert.deepEqual([...new Set(Object.values(rendered))], [1]);
    const scrolled = 2 * steps;
    const count = Object.keys(rendered).length;
    assert.ok(count >= scrolled && count <= scrolled + MARGIN + 1, `${count} rows were rendered`);
    const shown = await page.locator("[data-index]").count();
    assert.ok(shown <= HEIGHT / ROW + 2 * MARGIN + 2, `${shown} rows are in the document`);
  });

  it("are not rendered again if another row is selected", async () => {
    await page.evaluate(() => scrollTo(0, 0));
    await frame(page);
    await page.evaluate(() => takeRendered());
    await page.getByRole("checkbox", { name: "Select row 7", exact: true }).check();
    await frame(page);
    const one = await page.evaluate(() => takeRendered());
    assert.deepEqual(one, { "row 7": 1 });
    await page.getByRole("checkbox", { name: "Select all that are loaded" }).check();
    await frame(page);
    const all = await page.evaluate(() => takeRendered());
    assert.equal(all["row 7"], undefined);
    assert.equal(all["row 8"], 1);
  });
});

/** A script of this folder with what it imports, as the build makes it. */
async function bundle(file: string): Promise<string> {
  const built = (await build({
    configFile: false,
    root: fileURLToPath(new URL(".", import.meta.url)),
    logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"' },
    build: { write: false, rolldownOptions: { input: fileURLToPath(new URL(file, import.meta.url)) } },
  })) as Rolldown.RolldownOutput;
  const [chunk, ...more] = built.output;
  assert.equal(more.length, 0);
  return `(() => {${chunk!.code}})()`;
}

/** Waits until what the page has to render is rendered. */
function frame(page: Page): Promise<void> {
  return page.evaluate(
    () => new Promise<void>((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
  );
}
