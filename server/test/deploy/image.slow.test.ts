/** The image of containers. Its Dockerfile runs without Docker, which takes half a minute and needs the registry of npm. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { makeFolder, Program } from "../process.ts";
import { freePort } from "../services/free-port.ts";
import { addLibraries, buildImage, type Image, inContext, inImage, missingForImages } from "./dockerfile.ts";
import { needTool, repository, runTool, tools } from "./tools.ts";

const dockerfile = join(repository, "deploy/Dockerfile");
/** What gcr.io/distroless/cc contains: glibc, libgcc and libstdc++. */
const librariesOfBase = /^(ld-linux-.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.\d+$/;
const sizeMax = 21_500_000;

describe("the Dockerfile", () => {
  it("passes its linter", async (t) => {
    const hadolint = needTool(t, tools.hadolint);
    if (hadolint) assert.deepEqual(await runTool(hadolint, [dockerfile]), { code: 0, output: "" });
  });

  it("has the Node that the npm package brings", () => {
    const { optionalDependencies } = JSON.parse(readFileSync(join(repository, "server/package.json"), "utf8"));
    const [, version] = /^FROM node:([\d.]+)-/m.exec(readFileSync(dockerfile, "utf8"))!;
    for (const packaged of Object.values(optionalDependencies)) assert.equal(version, packaged);
  });
});

describe("the image", { skip: missingForImages() }, () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-image-"));
  let image: Image;
  let variables: Record<string, string>;

  before(async () => {
    const listing = ["-c", "safe.directory=*", "ls-files", "-z", "--cached"];
    const paths = execFileSync("git", listing, { cwd: repository, encoding: "utf8" }).split("\0").filter(Boolean);
    const files = inContext(paths, readFileSync(join(repository, ".dockerignore"), "utf8"));
    assert(!files.some((file) => file.endsWith(".test.ts")));
    image = await buildImage(dockerfile, { root: repository, files }, { folder, node: dirname(process.execPath) });
    variables = { LATCHKEY_PORT: String(await freePort()), LATCHKEY_DRAIN: "0" };
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs a command to its end, as `docker exec` does. */
  const run = (...command: string[]) => {
    const [program, ...args] = inImage(image, command, variables);
    const { status, stdout, stderr } = spawnSync(program!, args, { encoding: "utf8", timeout: 30_000 });
    return { code: status, output: stdout + stderr };
  };

  it("contains the package and Node, and needs no library that its base lacks", (t) => {
    const added = addLibraries(image, "usr/local/bin/node");
    for (const library of added) assert.match(library, librariesOfBase);
    const files = globSync("opt/**/*", { cwd: image.root }).filter((file) => statSync(join(image.root, file)).isFile());
    assert(files.includes("opt/latchkey/dist/main.mjs"));
    assert.deepEqual(
      files.filter((file) => /\.ts$|node_modules/.test(file)),
      [],
    );
    const bytes = files.reduce((sum, file) => sum + statSync(join(image.root, file)).size, 0);
    t.diagnostic(`${files.length} files and ${Math.round(bytes / 1e5) / 10} MB without Node`);
    assert(bytes < sizeMax);
  });

  it("serves with read-only files and an account without rights, reports its health, and stops", async (t) => {
    const [program, ...args] = inImage(image, [...image.entrypoint, ...image.command], variables);
    assert.notEqual(run(...image.healthcheck).code, 0, "healthy before the start");

    const server = new Program(args, { program: program!, directory: makeFolder(t) });
    await server.logged("latchkey is listening");
    const health = run(...image.healthcheck);
    assert.equal(health.code, 0, health.output);

    const rootKey = readFileSync(join(image.root, "data/root-key"), "utf8").trim();
    assert.equal(statSync(join(image.root, "data/root-key")).uid, Number(image.user.split(":")[0]));
    const call = async (operation: string, body: object) => {
      const response = await fetch(`http://127.0.0.1:${variables.LATCHKEY_PORT}/v2/${operation}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${rootKey}` },
        body: JSON.stringify(body),
      });
      return ((await response.json()) as { data: Record<string, unknown> }).data;
    };
    const { apiId } = await call("apis.createApi", { name: "contained" });
    const { key } = await call("keys.createKey", { apiId });
    assert.equal((await call("keys.verifyKey", { key })).code, "VALID");

    const keys = run("/usr/local/bin/latchkey", "root-key", "list");
    assert.equal(keys.code, 0, keys.output);
    assert.match(run("/usr/local/bin/node", "--eval", `fs.writeFileSync("/opt/a", "")`).output, /EROFS/);
    assert.match(
      run(
        "/usr/local/bin/node",
        "--print",
        "process.getuid() + fs.readFileSync('/proc/self/status', 'utf8').match(/CapEff.*/)[0]",
      ).output,
      /^65532CapEff:\t0+\n/,
    );

    assert.deepEqual(await server.kill("SIGTERM"), { code: 0, signal: null });
    assert.notEqual(run(...image.healthcheck).code, 0, "healthy after the stop");
  });
});
