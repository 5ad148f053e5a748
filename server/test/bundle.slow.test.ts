/** The bundle of a clone: built from a copy of the sources that a test can change. */
import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { copyRepository } from "./copy-repository.ts";
import { eventually, makeFolder, Program, ROOT_KEY, Server } from "./process.ts";

/** A clone with the same packages, and what its start would run. */
class Clone {
  readonly root: string;
  readonly cache: string;

  constructor(t: TestContext) {
    this.root = makeFolder(t);
    this.cache = join(this.root, "cache");
    copyRepository(this.root);
  }

  path(file: string): string {
    return join(this.root, "server", file);
  }

  /** A process that prints the path of the bundle's start file, or nothing. */
  find(cache = this.cache): Program {
    const module = pathToFileURL(this.path("build/cache.js")).href;
    const code = `const { cachedBundle } = await import(${JSON.stringify(module)});
      process.stdout.write(cachedBundle(${JSON.stringify(cache)}) ?? "");`;
    return new Program(["--input-type=module", "--eval", code], { directory: this.root });
  }

  async bundle(cache?: string): Promise<string> {
    const program = this.find(cache);
    const { code } = await program.ended;
    assert.equal(code, 0, program.output);
    return program.stdout;
  }
}

describe("the bundle of a clone", () => {
  it("is built once, and again after a source has changed", async (t) => {
    const clone = new Clone(t);
    const first = await clone.bundle();
    const { ino } = statSync(first);
    assert.equal(await clone.bundle(), first);
    assert.equal(statSync(first).ino, ino);

    appendFileSync(clone.path("src/main.ts"), 'console.log("changed");\n');
    const second = await clone.bundle();
    assert.notEqual(second, first);
    assert.match(readFileSync(second, "utf8"), /console\.log\([`"']changed/);
  });

  it("is built by two processes at once without harm", async (t) => {
    const clone = new Clone(t);
    const both = [clone.find(), clone.find()];
    await Promise.all(both.map(({ ended }) => ended));
    const [one, other] = both.map(({ stdout }) => stdout);
    assert.equal(one, other);
    assert(statSync(one!).isFile());
    assert.equal(readdirSync(clone.cache).length, 1);
  });

  it("is replaced by the sources when its folder cannot be written or a source has an error", async (t) => {
    const clone = new Clone(t);
    const file = join(clone.root, "file");
    writeFileSync(file, "");
    assert.equal(await clone.bundle(join(file, "cache")), "");

    mkdirSync(clone.cache);
    appendFileSync(clone.path("src/main.ts"), "const\n");
    assert.equal(await clone.bundle(), "");
    assert.deepEqual(readdirSync(clone.cache), []);
  });

  it("has only ASCII in what Node loads", async (t) => {
    const folder = dirname(await new Clone(t).bundle());
    // Browsers load the element of the portal.
    const names = readdirSync(folder).filter((name) => name.endsWith(".mjs") && name !== "latchkey-keys.mjs");
    assert(names.length > 50);
    for (const name of names) assert.doesNotMatch(readFileSync(join(folder, name), "latin1"), /[^\0-\x7f]/, name);
  });

  it("names the sources in stack traces", async (t) => {
    const clone = new Clone(t);
    const lines = readFileSync(clone.path("src/main.ts"), "utf8").split("\n").length;
    appendFileSync(clone.path("src/main.ts"), 'throw new Error("at the end");\n');
    const program = new Program([await clone.bundle(), "--version"], { directory: clone.root });
    assert.equal((await program.ended).code, 1);
    assert.match(program.stderr, new RegExp(`Error: at the end\n +at .*server/src/main\\.ts:${lines}:\\d+\\n`));
  });

  it("starts without what it does not use of Node", async (t) => {
    const clone = new Clone(t);
    const listing = 'process.once("exit", () => console.log(JSON.stringify({ modules: process.moduleLoadList })));';
    const service = new Server(["--import", `data:text/javascript,${listing}`, await clone.bundle(), "serve"], {
      directory: clone.root,
      settings: { ROOT_KEY, DATA_DIR: join(clone.root, "data"), DRAIN: "0", PORT: "0" },
    });
    await service.logged("latchkey is listening");
    await service.kill("SIGTERM");
    const threads = service.stdout.split("\n").filter((line) => line.startsWith('{"modules"'));
    assert(threads.length > 0);
    // The implementation of `fetch`, HTTP/2 and TLS take several megabytes.
    for (const line of threads) assert.doesNotMatch(line, /undici|http2|NativeModule tls|crypto\/webcrypto/);
  });

  it("has no file that is much longer than 350 kB", async (t) => {
    const folder = dirname(await new Clone(t).bundle());
    const long = readdirSync(folder).filter(
      (file) => file.endsWith(".mjs") && statSync(join(folder, file)).size > 400_000,
    );
    assert.deepEqual(long, []);
  });

  it("collects the garbage that the start left in each thread", async (t) => {
    const clone = new Clone(t);
    const service = new Server(["--trace-gc", await clone.bundle(), "serve"], {
      directory: clone.root,
      settings: { ROOT_KEY, DATA_DIR: join(clone.root, "data"), DRAIN: "0", PORT: "0" },
    });
    // A line names its thread. The threads are the main one, two of the database, and the writer of analytics.
    const collected = () => new Set(service.stdout.match(/^\[.*(?=\] .*Mark-Compact \(reduce\))/gm)).size;
    await eventually("the collections", () => collected() >= 4);
    await service.kill("SIGTERM");
  });

  it("serves on two threads, with a thread for each use of the embedded database", async (t) => {
    const clone = new Clone(t);
    const service = new Server([await clone.bundle(), "serve", "--port", "0"], {
      directory: clone.root,
      settings: { ROOT_KEY, DATA_DIR: join(clone.root, "data"), DRAIN: "0", WORKERS: "2" },
    });
    const { address, threads } = await service.logged("latchkey is listening");
    assert.equal(threads, 2);
    service.address = address as string;
    const { apiId } = await service.ok("apis.createApi", { name: "documents" });
    const { key } = await service.ok("keys.createKey", { apiId });
    assert.equal((await service.ok("keys.verifyKey", { key })).valid, true);
    // Database threads write events, and have no schemas.
    const [event] = await service.ok("events.listEvents", { types: ["key.created"] });
    assert.match(event.data.actor, /^rk_/);
    const now = Date.now();
    assert(await service.ok("analytics.getApiStats", { apiId, start: now - 3_600_000, end: now }));
    const page = await fetch(`${service.address}/openapi.json`);
    assert.equal(((await page.json()) as { openapi: string }).openapi, "3.1.1");
    assert.match(await (await fetch(`${service.address}/metrics`)).text(), /^latchkey_/m);
    assert.deepEqual(await service.kill("SIGTERM"), { code: 0, signal: null });
    assert.equal(service.stderr, "");
  });
});

describe("the dashboard of a clone", () => {
  /** What a start prints about it, if its build ends like this. */
  async function build(clone: Clone, builder: string): Promise<string> {
    // On the file system of the clone, and without a link to the packages, which this builder does not need.
    rmSync(join(clone.root, "node_modules"), { force: true, recursive: true });
    mkdirSync(join(clone.root, "node_modules"));
    writeFileSync(clone.path("build/build-dashboard.js"), builder);
    const module = pathToFileURL(clone.path("build/dashboard.js")).href;
    const code = `(await import(${JSON.stringify(module)})).ensureDashboard();`;
    const program = new Program(["--input-type=module", "--eval", code], { directory: clone.root });
    assert.equal((await program.ended).code, 0, program.output);
    return program.stderr;
  }

  it("is built for the first start, and again after its sources have changed", async (t) => {
    const clone = new Clone(t);
    assert.equal(await build(clone, ""), "latchkey: building the dashboard for the first start (about 10 seconds)\n");
    assert.equal(await build(clone, ""), "");
    const builds = () => readdirSync(join(clone.root, "dashboard/dist"));
    const [first] = builds();
    appendFileSync(join(clone.root, "dashboard/index.html"), "\n");
    assert.equal(
      await build(clone, ""),
      "latchkey: building the dashboard because its sources have changed (about 10 seconds)\n",
    );
    // A service that runs still reads the files of the first build.
    assert(builds().includes(first!) && builds().length === 2, builds().join());
  });

  it("is that of its sources, and has the documents without the dashboard too", async (t) => {
    const clone = new Clone(t);
    const dist = join(clone.root, "dashboard/dist");
    const printed = (title: string) => {
      const pages = { "index.html": title, "pages.json": "[]", "docs/index.html": title };
      return `import { mkdirSync, writeFileSync } from "node:fs";
        mkdirSync(process.argv[2] + "/docs");
        for (const [name, text] of Object.entries(${JSON.stringify(pages)})) writeFileSync(process.argv[2] + "/" + name, text);`;
    };
    await build(clone, printed("first"));
    const [first] = readdirSync(dist);
    appendFileSync(join(clone.root, "dashboard/index.html"), "\n");
    await build(clone, printed("second"));
    const second = readdirSync(dist).find((name) => name !== first)!;
    utimesSync(join(dist, second), 0, 0);
    rmSync(join(clone.root, "node_modules"), { recursive: true });
    symlinkSync(fileURLToPath(new URL("../../node_modules", import.meta.url)), join(clone.root, "node_modules"));
    const service = new Server([clone.path("bin/latchkey.js"), "serve", "--port", "0"], {
      directory: clone.root,
      settings: { ROOT_KEY, DATA_DIR: join(clone.root, "data"), DRAIN: "0", DASHBOARD: "off" },
    });
    const { address } = await service.logged("latchkey is listening");
    assert.equal(await (await fetch(`${address}/docs`)).text(), "second");
    await service.kill("SIGTERM");
  });

  it("is not built by a user who may not write there, who is told so", async (t) => {
    const clone = new Clone(t);
    const failing = (message: string) => `console.error("Error: ${message}"); process.exitCode = 1;`;
    const printed = await build(clone, failing("EACCES: permission denied, open '/clone/x'"));
    assert.match(
      printed,
      /could not be built: Error: EACCES: permission denied, open '\/clone\/x'\. This user may not write/,
    );
    assert.match(printed, /Start once as the owner of the folder, or in a clone of your own\.\n$/);
    assert.doesNotMatch(printed, /npm ci/);
    assert.match(
      await build(clone, failing("Cannot find package 'vite'")),
      /'vite' Try `npm ci`, then start again\.\n$/,
    );
  });
});
