/** The package as it is published: JavaScript with declarations. The programs of README.md use it. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { codeBlocks } from "../../server/test/code-blocks.ts";
import { eventually, makeFolder, Program, ROOT_KEY, type Server, start } from "../../server/test/process.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));
const sdk = join(repository, "sdk");
const modules = join(repository, "node_modules");
const compiler = join(modules, "typescript/bin/tsc");
const programs = codeBlocks(readFileSync(join(sdk, "README.md"), "utf8")).filter(({ language }) => language === "ts");
/** What the programs that call the service print. */
const outputs = ["rejected: NOT_FOUND\n", /^\[redacted\]\nkey_\w+ \w+\ntrue 99\n$/, /^no such key req_\w+\n$/, ""];
/** Servers with a route `/hello` or `/search`. Programs that declare a function of the reader are only compiled. */
const servers = programs
  .map((program, i) => ({ ...program, file: `dist/program-${i}.mjs` }))
  .slice(outputs.length)
  .filter(({ code }) => !code.includes("declare function"));

/** How programs find the package, by what TypeScript calls it. */
const resolutions = {
  nodenext: { module: "nodenext" },
  node16: { module: "node16", noEmit: true },
  bundler: { module: "esnext", moduleResolution: "bundler", noEmit: true },
};

/** The settings of a program that uses the package. */
const settings = (resolution: object) => ({
  compilerOptions: {
    target: "es2022",
    lib: ["es2022", "dom", "dom.iterable"],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUnusedLocals: true,
    noUnusedParameters: true,
    rootDir: "src",
    outDir: "dist",
    ...resolution,
  },
  include: ["src"],
});

/** A program in CommonJS. It verifies a key that does not exist. */
const commonjs = `
  import { Latchkey, LatchkeyError } from "@latchkey/sdk";
  import { verify } from "@latchkey/sdk/express";

  const latchkey = new Latchkey();
  const handler: ReturnType<typeof verify> = verify({ apiId: "api_123" });
  void latchkey.keys.getKey({ keyId: "key_0000000000000000" }).catch((error: unknown) => {
    console.log(typeof handler, error instanceof LatchkeyError ? error.type : error);
  });
`;

/** Serves what a module exports. */
const serve = `
  import { serve } from "@hono/node-server";
  const module = await import(process.argv[2]);
  const handler = module.default?.fetch ?? ((request) => module.GET(request, { params: Promise.resolve({}) }));
  if (module.default ?? module.GET) serve({ fetch: handler, port: 3000 });
`;

/** Replaces the port of the guides by a free one, and prints it. */
const freePort = `
  import { Server } from "node:net";
  const { listen } = Server.prototype;
  Server.prototype.listen = function (port, ...rest) {
    this.once("listening", () => console.log("port", this.address().port));
    return listen.call(this, typeof port === "object" ? { ...port, port: 0 } : 0, ...rest);
  };
`;

describe("the package of the client", () => {
  const folder = makeFolder({ after });
  let server: Server;

  before(async () => {
    const copy = join(folder, "repository");
    for (const path of [
      "sdk/src",
      "sdk/build.js",
      "sdk/bundle-local.js",
      "sdk/tsconfig.local.json",
      // Bundled with the entry point `local`.
      "engine/src",
      "engine/package.json",
      "sdk/package.json",
      "sdk/README.md",
      "sdk/tsconfig.json",
      "sdk/tsconfig.cjs.json",
      "tsconfig.json",
      "LICENSE",
    ]) {
      cpSync(join(repository, path), join(copy, path), { recursive: true });
    }
    symlinkSync(modules, join(copy, "node_modules"));
    const tarballs = [join(copy, "sdk"), join(modules, "hono"), join(modules, "@hono/node-server")].map((source) => {
      const [{ filename }] = JSON.parse(npm(["pack", "--json", "--pack-destination", folder], source));
      return join(folder, filename);
    });
    mkdirSync(join(folder, "empty/src"), { recursive: true });
    npm(["install", "--offline", "--no-audit", "--no-fund", ...tarballs], join(folder, "empty"));
    for (const name of ["express", "fastify", "@types"])
      symlinkSync(join(modules, name), join(folder, "empty/node_modules", name));
    for (const [i, { code }] of programs.entries()) writeFileSync(join(folder, `empty/src/program-${i}.mts`), code);
    writeFileSync(join(folder, "empty/src/commonjs.cts"), commonjs);
    writeFileSync(join(folder, "empty/serve.mjs"), serve);
    writeFileSync(join(folder, "empty/free-port.mjs"), freePort);
    server = await start({ directory: folder });
  });
  after(async () => {
    await server?.kill("SIGTERM");
  });

  function npm(args: readonly string[], cwd: string): string {
    const env = { ...process.env, npm_config_cache: join(folder, "npm"), npm_config_update_notifier: "false" };
    return execFileSync("npm", args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  for (const [name, resolution] of Object.entries(resolutions)) {
    it(`has types that a strict program can use with the resolution ${name}`, () => {
      const directory = join(folder, "empty");
      writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(settings(resolution)));
      const { stdout, status } = spawnSync(process.execPath, [compiler, "--project", directory], { encoding: "utf8" });
      assert.equal(status, 0, stdout);
    });
  }

  const run = (args: string[]) =>
    new Program(args, {
      directory: join(folder, "empty"),
      environment: { LATCHKEY_URL: server.address, LATCHKEY_ROOT_KEY: ROOT_KEY },
      program: "node",
    });

  for (const [i, output] of outputs.entries()) {
    it(`runs program ${i + 1} of README.md with the Node of this machine`, async () => {
      const ran = run([`dist/program-${i}.mjs`]);
      await ran.ended;
      assert.equal(ran.stderr, "");
      if (typeof output === "string") assert.equal(ran.stdout, output);
      else assert.match(ran.stdout, output);
    });
  }

  it("runs in CommonJS with a Node that cannot load ES modules by require", async () => {
    // As Node before 20.19 and 22.12.
    const ran = run(["--no-experimental-require-module", "dist/commonjs.cjs"]);
    await ran.ended;
    assert.equal(ran.output, "function data/key_not_found\n");
  });

  it("has all entry points in both forms, with source maps that hold the source", () => {
    const installed = join(folder, "empty/node_modules/@latchkey/sdk");
    const { name, exports } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    // Tools read it by the name of the package.
    const { resolve } = createRequire(join(folder, "empty/index.js"));
    assert.equal(resolve(`${name}/package.json`), join(realpathSync(installed), "package.json"));
    delete exports["./package.json"];
    for (const forms of Object.values<Record<string, { types: string; default: string }>>(exports)) {
      assert.deepEqual(Object.keys(forms), ["import", "require"]);
      for (const { types, default: file } of Object.values(forms)) {
        assert(existsSync(join(installed, types)));
        const map = JSON.parse(readFileSync(join(installed, `${file}.map`), "utf8"));
        assert.deepEqual(map.sourcesContent.length, map.sources.length);
      }
    }
  });

  assert.deepEqual(
    servers.map(({ heading }) => heading),
    ["Hono", "Express", "Fastify", "Next.js", "node:http", "Bun, Deno, Workers", "Limiting requests"],
  );
  for (const { heading, code, file: compiled } of servers) {
    it(`answers 401, 200 and 429 with the program of README.md for "${heading}", from an empty folder`, async () => {
      const { apiId } = await server.ok("apis.createApi", { name: heading });
      const limit = { name: "requests", limit: 1, duration: 86_400_000, autoApply: true };
      const { key, keyId } = await server.ok("keys.createKey", { apiId, ratelimits: [limit] });
      const file = join(folder, "empty", compiled);
      writeFileSync(file, readFileSync(file, "utf8").replace("api_123", apiId));

      const ran = run(["--import", "./free-port.mjs", "serve.mjs", file]);
      try {
        let port: string | undefined;
        await eventually("the program listens", () => {
          if (ran.hasEnded) throw new Error(ran.output);
          port = /^port (\d+)$/m.exec(ran.stdout)?.[1];
          return port !== undefined;
        });
        const path = code.includes('"/search"') ? "/search" : "/hello";
        const ask = (headers: Record<string, string>) => fetch(`http://localhost:${port}${path}`, { headers });
        const headers = { authorization: `Bearer ${key}` };
        assert.equal((await ask({})).status, 401);
        const passed = await ask(headers);
        assert.equal(passed.status, 200);
        assert.equal(await passed.text(), `Hello ${keyId}`);
        assert.match(passed.headers.get("ratelimit-policy")!, /^"requests";q=1;w=86400/);
        const rejected = await ask(headers);
        assert.equal(rejected.status, 429);
        assert.match(rejected.headers.get("retry-after")!, /^[1-9]\d*$/);
        assert.equal(ran.stderr, "");
      } finally {
        await ran.kill("SIGKILL");
      }
    });
  }
});
