/** `npm run release`, in a copy of this repository. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { makeFolder } from "./process.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));

/** A repository with one commit: the files of this one, with a known version and changelog. */
class Copy {
  readonly root: string;

  constructor(t: TestContext, unreleased = "### Keys\n\n- A line for callers.\n") {
    this.root = join(makeFolder(t), "copy");
    const listing = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    const paths = execFileSync("git", listing, { cwd: repository, encoding: "utf8" }).split("\0").filter(Boolean);
    // A release reads no tests and no documents.
    const needed = paths.filter((path) => !/^(bench|decisions|docs|server\/test)\//.test(path));
    for (const path of new Set(needed)) {
      const source = join(repository, path);
      if (!existsSync(source)) continue;
      mkdirSync(dirname(join(this.root, path)), { recursive: true });
      cpSync(source, join(this.root, path));
    }
    symlinkSync(join(repository, "node_modules"), join(this.root, "node_modules"));
    this.write("CHANGELOG.md", `# Changelog\n\n## Unreleased\n\n${unreleased}\n## 0.0.1 (2020-01-01)\n\n- Older.\n`);
    this.write(
      "server/package.json",
      this.read("server/package.json").replace(/"version": ".*"/, '"version": "0.3.4"'),
    );
    this.git("init", "--quiet", "--initial-branch=main");
    // The ignored folder is a link here.
    appendFileSync(join(this.root, ".git/info/exclude"), "node_modules\n");
    for (const [name, value] of Object.entries({
      "user.name": "Test",
      "user.email": "test@latchkey.invalid",
      "commit.gpgSign": "false",
      "tag.gpgSign": "false",
    })) {
      this.git("config", name, value);
    }
    this.git("add", "--all");
    this.git("commit", "--quiet", "--message", "Start");
  }

  git(...args: string[]): string {
    return execFileSync("git", args, { cwd: this.root, encoding: "utf8" }).trim();
  }

  release(...args: string[]): { code: number | null; output: string } {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["server/release.ts", ...args], {
      cwd: this.root,
      encoding: "utf8",
    });
    return { code: status, output: stdout + stderr };
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), "utf8");
  }

  write(path: string, text: string): void {
    writeFileSync(join(this.root, path), text);
  }

  /** Everything that a release can change. */
  state(): string[] {
    return [this.git("rev-parse", "HEAD"), this.git("status", "--porcelain"), this.git("tag", "--list")];
  }
}

describe("npm run release", () => {
  it("sets every version, dates the changelog, commits and tags", (t) => {
    const copy = new Copy(t);
    const { code, output } = copy.release("minor");
    assert.equal(code, 0, output);

    const { packages } = JSON.parse(copy.read("package-lock.json"));
    for (const workspace of ["engine", "cli", "server", "sdk", "dashboard"]) {
      assert.equal(JSON.parse(copy.read(`${workspace}/package.json`)).version, "0.4.0", workspace);
      assert.equal(packages[workspace].version, "0.4.0", workspace);
    }
    assert.equal(JSON.parse(copy.read("package.json")).version, "0.4.0");
    assert.equal(JSON.parse(copy.read("api/openapi.json")).info.version, "0.4.0");
    assert.match(copy.read("clients/python/src/latchkey/_version.py"), /^VERSION = "0\.4\.0"$/m);
    assert.match(copy.read("deploy/helm/latchkey/Chart.yaml"), /^version: 0\.4\.0\nappVersion: "0\.4\.0"$/m);
    assert.match(
      copy.read("CHANGELOG.md"),
      /^# Changelog\n\n## Unreleased\n\n## 0\.4\.0 \(\d{4}-\d\d-\d\d\)\n\n### Keys\n\n- A line for callers\.\n\n## 0\.0\.1/,
    );

    assert.equal(copy.git("status", "--porcelain"), "");
    assert.equal(copy.git("log", "--format=%s"), "Release 0.4.0\nStart");
    assert.equal(copy.git("rev-parse", "v0.4.0^{commit}"), copy.git("rev-parse", "HEAD"));
    assert.equal(
      copy.git("tag", "--list", "--format=%(contents)", "v0.4.0"),
      "Latchkey 0.4.0\n\n### Keys\n\n- A line for callers.",
    );
    assert.equal(copy.git("rev-parse", "clients/go/v0.4.0^{commit}"), copy.git("rev-parse", "HEAD"));
    const pushed = "v0.4.0 clients/go/v0.4.0 clients/go/latchkeygin/v0.4.0";
    assert(output.includes(`git push --atomic origin main ${pushed}`), output);
    assert.deepEqual(copy.release("notes", "v0.4.0"), { code: 0, output: "### Keys\n\n- A line for callers.\n" });
  });

  it("leaves everything but versions and the changelog as it is", (t) => {
    const copy = new Copy(t);
    assert.equal(copy.release("patch").code, 0);
    const lines = copy.git("diff", "--unified=0", "HEAD~", "HEAD", "--", ".", ":!CHANGELOG.md").split("\n");
    const added = lines.filter((line) => /^\+[^+]/.test(line));
    assert.equal(added.length, 18);
    for (const line of added) assert.match(line, /(version"?(:| =) "?|clients\/go v)0\.3\.5"?,?$/i);
  });

  it("counts major, minor and patch, and accepts a version", (t) => {
    const copy = new Copy(t);
    for (const [step, version] of [
      ["major", "1.0.0"],
      ["minor", "0.4.0"],
      ["patch", "0.3.5"],
      ["0.3.4", "0.3.4"],
      ["0.10.0", "0.10.0"],
    ] as const) {
      assert.match(copy.release(step, "--dry-run").output, new RegExp(`tag v${version.replaceAll(".", "\\.")} with`));
    }
  });

  it("changes nothing with --dry-run", (t) => {
    const copy = new Copy(t);
    const before = copy.state();
    const { code, output } = copy.release("minor", "--dry-run");
    assert.equal(code, 0, output);
    assert.match(output, /0\.4\.0[\s\S]*Chart\.yaml[\s\S]*A line for callers/);
    assert.deepEqual(copy.state(), before);
  });

  for (const [what, prepare, message, unreleased] of [
    ["a dirty tree", (copy: Copy) => copy.write("NEW.md", "new"), /The tree has changes.*\n.*NEW\.md/],
    [
      "another branch",
      (copy: Copy) => copy.git("switch", "--quiet", "--create", "topic"),
      /on main, and this is topic/,
    ],
    ["a detached commit", (copy: Copy) => copy.git("switch", "--quiet", "--detach"), /this is no branch/],
    ["a tag that exists", (copy: Copy) => copy.git("tag", "v0.4.0"), /The tag v0\.4\.0 exists/],
    [
      "a tag of the Go module that exists",
      (copy: Copy) => copy.git("tag", "clients/go/v0.4.0"),
      /The tag clients\/go\/v0\.4\.0 exists/,
    ],
    ["an empty changelog", () => {}, /nothing under "Unreleased"/, "### Keys\n"],
  ] as const) {
    it(`rejects ${what}`, (t) => {
      const copy = new Copy(t, unreleased);
      prepare(copy);
      const before = copy.state();
      const { code, output } = copy.release("minor");
      assert.equal(code, 1);
      assert.match(output, message);
      assert.deepEqual(copy.state(), before);
    });
  }

  it("rejects other arguments with its usage, and a section that does not exist", (t) => {
    const copy = new Copy(t);
    for (const args of [[], ["huge"], ["1.2"], ["minor", "now"], ["minor", "--force"]]) {
      const { code, output } = copy.release(...args);
      assert.equal(code, 1);
      assert.match(output, /Usage|--force/);
    }
    assert.match(copy.release("0.3.3").output, /older than 0\.3\.4/);
    assert.match(copy.release("notes", "9.9.9").output, /no section "## 9\.9\.9"/);
  });

  it("takes its changes back when a step fails", (t) => {
    const copy = new Copy(t);
    const before = copy.state();
    copy.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    execFileSync("chmod", ["+x", join(copy.root, ".git/hooks/pre-commit")]);
    assert.notEqual(copy.release("minor").code, 0);
    assert.deepEqual(copy.state(), before);
  });
});
