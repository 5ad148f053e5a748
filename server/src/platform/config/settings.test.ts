import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { describe, it } from "node:test";
import { readConfig } from "./config.ts";
import { ConfigurationError, checkClientVariables, readEnvironment } from "./env.ts";
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
    // What `latchkey edge` and the commands that call a service read is known too.
    assert.throws(() => readEnvironment({ LATCHKEY_ULR: "1" }, settingNames), /Did you mean LATCHKEY_URL\?$/);
  });

  it("lists all settings for an unknown one without a similar name", () => {
    assert.throws(
      () => readEnvironment({ LATCHKEY_SOMETHING_ELSE: "1" }, settingNames),
      /The settings are LATCHKEY_PORT, LATCHKEY_ROOT_KEY, LATCHKEY_ROOT_KEY_FILE$/,
    );
  });
});

describe("the environment of a command that calls a service", () => {
  const check = (environment: NodeJS.ProcessEnv) => checkClientVariables(environment, settings);

  it("has no misspelled variable of those that the commands read", () => {
    const sources = globSync("cli/src/**/*.ts", { cwd: root }).filter((path) => !path.endsWith(".test.ts"));
    const texts = sources.map((path) => readFileSync(new URL(path, root), "utf8"));
    const read = [...new Set(texts.flatMap((text) => text.match(/\bLATCHKEY_[A-Z_]*[A-Z]\b/g) ?? []))];
    assert(read.includes("LATCHKEY_URL") && read.includes("LATCHKEY_PROFILE"), read.join());
    for (const variable of read) {
      assert.doesNotThrow(() => check({ [variable]: "a value" }));
      const misspelled = variable.replace(/(.)(.)$/, "$2$1");
      assert.throws(
        () => check({ [misspelled]: "a secret" }),
        new ConfigurationError(misspelled, undefined, `there is no such variable. Did you mean ${variable}?`),
      );
    }
    assert.throws(() => check({ LATCHKEY_ROOTKEY: "a secret" }), /Did you mean LATCHKEY_ROOT_KEY\?$/);
    assert.throws(() => check({ LATCHKEY_ROOT_KEY_FIEL: "a file" }), /Did you mean LATCHKEY_ROOT_KEY_FILE\?$/);
  });

  it("can have the variables of the service, and those of applications", () => {
    const names = settings.flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name]));
    assert.doesNotThrow(() => check(Object.fromEntries(names.map((name) => [`LATCHKEY_${name}`, "a value"]))));
    for (const environment of [
      { LATCHKEY_KEY_ID: "key_1" },
      { LATCHKEY_PORT_3000_TCP: "tcp://10.0.0.1:3000", LATCHKEY_SERVICE_HOST: "10.0.0.1" },
      // They begin with a known name, so they are meant as they are.
      { LATCHKEY_ROOT_KEY_ID: "key_1" },
      { LATCHKEY_URLS: "https://a.example https://b.example" },
      // The one that it could be is set.
      { LATCHKEY_URL: "https://keys.example.com", LATCHKEY_CURL: "curl" },
      // An empty one counts as absent, and is often written for what is not set.
      { LATCHKEY_ULR: "" },
      { LATCHKEY_TEST_URL: "http://127.0.0.1:1" },
      // These commands do not read what it could be.
      { LATCHKEY_WORKRES: "2" },
    ]) {
      assert.doesNotThrow(() => check(environment), JSON.stringify(environment));
    }
    assert.throws(() => check({ LATCHKEY_CURL: "curl" }), /Did you mean LATCHKEY_URL\?$/);
    assert.throws(() => check({ LATCHKEY_ULR: "https://keys.example.com", LATCHKEY_URL: "" }), /LATCHKEY_URL\?$/);
  });
});
