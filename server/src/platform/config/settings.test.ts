import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { describe, it } from "node:test";
import { readConfig } from "./config.ts";
import { ConfigurationError, readEnvironment } from "./env.ts";
import { readSecrets } from "./secrets.ts";
import { settings } from "./settings.ts";

const root = new URL("../../../../", import.meta.url);

describe("settings", () => {
  it("have unique names", () => {
    const names = settings.map(({ name }) => name);
    assert.deepEqual(names, [...new Set(names)]);
  });

  it("have defaults that they accept", () => {
    const nothing = new Map();
    assert.doesNotThrow(() => [readConfig(nothing), readSecrets(nothing)]);
  });

  it("are listed in docs/settings.md, each with its default and its range", () => {
    const manual = readFileSync(new URL("../../../../docs/settings.md", import.meta.url), "utf8");
    const rows = manual.matchAll(/^\| `LATCHKEY_(\w+)`( \*)? \| (.*?) \| (.*?) ?\| .* \|$/gm);
    const plain = (text: string) => text.replaceAll("`", "");
    const documented = new Map([...rows].map(([, name, star, shown, range]) => [name!, { star, shown, range }]));
    assert.deepEqual([...documented.keys()].sort(), settings.map(({ name }) => name).sort());
    for (const { name, shownDefault, range, isSecret } of settings) {
      const row = documented.get(name)!;
      assert.equal(plain(row.shown!), shownDefault, `default of ${name}`);
      assert.equal(row.star !== undefined, isSecret, `the star of ${name} says that it is a secret`);
      if (range !== undefined) assert.equal(plain(row.range!), range, `range of ${name}`);
    }
  });
});

describe("the configuration", () => {
  it("has no value that the program never reads", () => {
    const sources = globSync("server/src/**/*.ts", { cwd: root })
      .filter((path) => !path.endsWith(".test.ts") && !path.startsWith("server/src/platform/config/"))
      .map((path) => readFileSync(new URL(path, root), "utf8"));
    const words = new Set(sources.flatMap((source) => source.match(/\w+/g)));
    const names = namesIn({ ...readConfig(new Map()), ...readSecrets(new Map()) });
    assert(names.includes("lookupsPerSecond"));
    assert.deepEqual(
      names.filter((name) => !words.has(name)),
      [],
    );
  });
});

/** The names of members, and those of members of members. */
function namesIn(value: object): string[] {
  return Object.entries(value).flatMap(([name, member]) => [
    name,
    ...(Object(member) === member && !Array.isArray(member) ? namesIn(member) : []),
  ]);
}

describe("an empty text", () => {
  const rejects = (name: string, remedy: string) =>
    assert.throws(() => readConfig(new Map([[name, ""]])), new ConfigurationError(`LATCHKEY_${name}`, "", remedy));

  it("is no host: node:http would listen on all addresses of the machine", () => {
    rejects("HOST", "give an address or a name, or unset it");
    assert.throws(() => readConfig(new Map([["METRICS", "[]:9464"]])), ConfigurationError);
  });

  it("is no path: files would be in the folder in which the program was started", () => {
    for (const name of ["DATA_DIR", "BACKUP_FOLDER", "GRPC_TLS_CERT", "GRPC_TLS_KEY", "GRPC_TLS_CLIENT_CA"])
      rejects(name, "give a path, or unset it");
    assert.throws(() => readConfig(new Map([["GITHUB_KEYS", ""]])), ConfigurationError);
  });
});

describe("LATCHKEY_WORKERS", () => {
  const workersOf = (texts: Record<string, string>) => readConfig(new Map(Object.entries(texts))).workers;

  it("is as many threads as leave a core, if it is auto", () => {
    const automatic = workersOf({ WORKERS: "auto", DIRECTORY_BYTES: "64g" });
    assert.equal(automatic, Math.max(1, Math.min(64, availableParallelism() - 1)));
    assert.equal(workersOf({ WORKERS: "auto", DIRECTORY_BYTES: "40m" }), 1);
    assert.equal(workersOf({ WORKERS: "auto", FAST_LANE: "off" }), 1);
    assert.equal(workersOf({}), 1);
  });

  it("rejects other texts, and several threads without the fast lane", () => {
    for (const WORKERS of ["0", "65", "some"]) assert.throws(() => workersOf({ WORKERS }), ConfigurationError);
    assert.throws(() => workersOf({ WORKERS: "2", FAST_LANE: "off" }), ConfigurationError);
  });
});

describe("the environment", () => {
  const settingNames = [
    { name: "PORT", isSecret: false },
    { name: "ROOT_KEY", isSecret: true },
  ];

  it("suggests the settings with the nearest name for an unknown one", () => {
    assert.throws(
      () => readEnvironment({ LATCHKEY_PROT: "1" }, settingNames),
      new ConfigurationError("LATCHKEY_PROT", undefined, "there is no such setting. Did you mean LATCHKEY_PORT?"),
    );
  });

  it("lists all settings for an unknown one without a similar name", () => {
    assert.throws(
      () => readEnvironment({ LATCHKEY_SOMETHING_ELSE: "1" }, settingNames),
      /The settings are LATCHKEY_PORT, LATCHKEY_ROOT_KEY, LATCHKEY_ROOT_KEY_FILE$/,
    );
  });
});
