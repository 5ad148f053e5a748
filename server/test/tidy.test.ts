/**
 * The rules of the code. Each rule finds violations in a set of files, from path to text. It runs on this repository,
 * and on an artificial violation, so that it cannot stop working unnoticed.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

/** The rooms from the top floor to the ground. A room imports from the floors below its own, and from itself. */
const floors = [
  ["main"],
  ["cli"],
  ["move"],
  ["service", "edge"],
  ["backup"],
  ["features"],
  ["platform/http", "platform/grpc", "platform/vocabulary"],
  ["platform/rpc"],
  ["platform/config"],
  ["platform/vault", "platform/redis"],
  ["platform/store", "platform/outbound"],
  ["log", "metrics", "platform/connections", "platform/memory"],
  ["engine/replica"],
  ["engine/verification"],
  ["engine/directory", "engine/limits", "engine/credits"],
  // The client commands: of the engine they use pure rules, digests, time and chance, and nothing that decides a call.
  ["cli/src"],
  ["engine/rules"],
  ["engine/clock", "engine/random", "engine/collections", "engine/crypto", "engine/errors"],
];

/**
 * Features that use more of others than their statements and records, from the top down: each may use those below it.
 */
const featureOrder = [
  "system",
  "replica",
  "portal",
  "apis",
  "upstreams",
  "keys",
  "identities",
  "plans",
  "permissions",
  "leaks",
  "analytics",
  "ratelimits",
  "holds",
  "budgets",
  "events",
];

/**
 * Files outside of a folder, and the name under which they are on a floor. Every other entry is the folder of that
 * name.
 */
const nameOfFile: Record<string, string> = {
  "main.ts": "main",
};

/** Folders that only some others may import. */
const visitors: Record<string, string[]> = {
  "platform/config": ["main", "cli", "move", "service", "edge", "backup"],
  // The command line alone runs them.
  "cli/src": ["cli"],
};

/** What the commands of the operator share with the client commands: errors, results, text for a terminal. */
const loadedAtStart = ["cli/src/output.ts", "cli/src/printable.ts", "cli/src/colours.ts", "cli/src/times.ts"];

/** What the client commands use of the SDK: what it exports, and the calls of operations by their names. */
const sdkForCommands = ["sdk/src/index.ts", "sdk/src/call.ts"];

/** Things with one home: the files that may use them, and what all others do instead. */
const homes: { name: string; what: RegExp; places: string[]; instead: string; violation: string }[] = [
  {
    name: "time",
    // Connections have timers of their own, as in `node:http`.
    what: /\b(Date\.now|performance\.now|process\.hrtime|(?<!socket\.)setTimeout|setInterval)\b|\bnew Date\(\)/,
    // The second one has a timer of its own too.
    places: ["engine/src/clock/", "platform/http/threads/tunnelled-connection.ts"],
    instead: "take a Clock as an argument",
    violation: "const timer = setTimeout(close, 10);",
  },
  {
    name: "chance",
    what: /\bMath\.random\b/,
    places: ["engine/src/random/"],
    instead: "take a Random as an argument",
    violation: "const jitter = Math.random();",
  },
  {
    name: "the environment",
    what: /\bprocess\.env\b|"node:process"/,
    places: ["platform/config/"],
    instead: "read the variable in platform/config/ and take its value as an argument",
    violation: "const host = process.env.LATCHKEY_HOST;",
  },
  {
    name: "cryptography",
    what: /"node:crypto"|\bcrypto\.(subtle|randomUUID|getRandomValues)\b/,
    places: [
      "engine/src/crypto/",
      "engine/src/random/system.ts",
      "engine/src/rules/key-string.ts",
      "features/webhooks/signature.ts",
    ],
    instead: "use or add a verb in engine/src/crypto/",
    violation: 'import { createHash } from "node:crypto";',
  },
  {
    name: "validation",
    what: /\.(safeParse|parseAsync|safeParseAsync)\(/,
    places: ["platform/rpc/validate.ts", "platform/rpc/long-body.ts", "cli/"],
    instead: "validate in platform/rpc/, because the bundle of database threads has no schemas",
    violation: "const { success } = input.safeParse(body);",
  },
  {
    name: "the name of the database",
    what: /\bdialect(\.name)?\s*[!=]==|\bdialect\.name\b|\bDialectName\b/,
    // Migrations are never edited. The dialect of a dump is that of the file.
    places: [
      "platform/store/dialect.ts",
      "platform/store/migrate.ts",
      "platform/store/migrations/",
      "features/analytics/sql/migrations/",
      "cli/src/import/dump/",
    ],
    instead: "add an operation to Dialect in platform/store/dialect.ts, which each database implements",
    violation: 'const lock = sql.dialect.name === "postgres" ? "for update" : "";',
  },
  {
    name: "HTTP",
    what: /"(fastify|@fastify\/[^"]*)"/,
    places: [
      "platform/http/",
      "features/dashboard/",
      "features/portal/",
      "features/leaks/",
      "features/oauth/",
      "features/keys/forward-auth.ts",
    ],
    instead: "leave HTTP to platform/http/, and to the routes of a feature",
    violation: 'import type { FastifyRequest } from "fastify";',
  },
  {
    name: "SQL",
    what: /"(kysely|pg|node:sqlite)(\/[^"]*)?"/,
    places: ["platform/store/", "features/*/statements", "features/analytics/sql/"],
    instead: "use or add a verb of the store, or a statement of a feature",
    violation: 'import { sql } from "kysely";',
  },
  {
    name: "the terminal",
    what: /\bconsole\./,
    places: ["cli/", "cli/src/"],
    instead: "use the log",
    violation: 'console.log("here");',
  },
];

/** Only tests reach these: substitutes for the outside, and the suites that every implementation runs. */
const forTests = [
  "engine/src/clock/simulated.ts",
  "engine/src/random/seeded.ts",
  "engine/src/limits/counters-contract.ts",
  "engine/src/limits/counters-model.ts",
  "engine/src/limits/faulty-files.ts",
  "engine/src/limits/leases-model.ts",
  "engine/src/limits/memory-threads-worker.ts",
  "engine/src/replica/simulated-home.ts",
  "engine/src/replica/simulated-limits.ts",
  "server/src/features/analytics/rollups-contract.ts",
  "server/src/platform/store/sqlite/store-here.ts",
];

/** Writers that the store does not make for handlers. */
const notOfWorkspace = ["StoreWriter", "WorkspaceWriter"];

const source = "server/src/";
const engine = "engine/src/";
const clientCommands = "cli/src/";

/** How many assertions each file has that the compiler does not check. The list only becomes shorter. */
const assertionsFile = "server/test/assertions.json";
/** `!` behind an expression or a declared name, and `as never`. */
const assertion = /[\w)\]}]!(?=[\s.,;:)\]}[?(`]|$)(?!=)|\bas never\b/g;
type Files = ReadonlyMap<string, string>;
interface Rule {
  name: string;
  /** One sentence for each violation: where it is, and what to do instead. */
  violations(files: Files): string[];
  /** Files that violate the rule, once. */
  example: Record<string, string>;
}

/** What a test does too early on a busy machine. The helpers are in `dashboard/test/waiting.ts`. */
const hasty = [
  {
    what: /\bassert(?:\.\w+)?\((?:(?!;\n)[\s\S])*?\bawait\b(?:(?!;\n)[\s\S])*?\.(?:allInnerTexts|allTextContents|boundingBox|content|count|evaluate|evaluateAll|getAttribute|innerText|inputValue|is[A-Z]\w+|textContent|title)\(/,
    instead: "judges what a page shows at one moment: use eventuallyEqual() or another helper that waits",
  },
  {
    what: /\bkeyboard\.(?:press|type|insertText)\(/,
    instead: "presses a key wherever the focus is: use pressIn(), or press() of the element",
  },
];

const rules: Rule[] = [
  {
    name: "imports lead to a floor below",
    violations: (files) =>
      everyImport(files).flatMap(([from, to]) => {
        if (from.startsWith(clientCommands) && sdkForCommands.includes(to)) return [];
        if (!isProgram(to)) {
          return [`${from} imports ${to}: keep what the program needs in ${source}, ${clientCommands} or ${engine}.`];
        }
        const [importer, imported] = [folderOf(from), folderOf(to)];
        if (importer === imported || floorOf(importer) === -1 || floorOf(importer) < floorOf(imported)) return [];
        const relation = floorOf(importer) === floorOf(imported) ? "its neighbour on the floor" : "which is above it";
        return [
          `${from} imports ${to}, ${relation}: take what you need as an argument, or move it to a floor below both.`,
        ];
      }),
    example: { "engine/src/limits/a.ts": 'import { spend } from "../credits/ledger.ts";' },
  },
  {
    name: "every folder has a floor",
    violations: (files) =>
      programFiles(files)
        .filter(([path]) => floorOf(folderOf(path)) === -1)
        .map(
          ([path]) =>
            `${path} is on no floor: put it into a folder with a floor, or give its folder one in tidy.test.ts.`,
        ),
    example: { "server/src/helpers/a.ts": "" },
  },
  {
    name: "every folder on a floor exists",
    violations: (files) => {
      const names = new Set(programFiles(files).map(([path]) => folderOf(path)));
      return floors
        .flat()
        .filter((name) => names.size > 1 && !names.has(name))
        .map((name) => `tidy.test.ts lists ${name}, which does not exist: remove it from the floors.`);
    },
    example: Object.fromEntries(
      floors
        .flat()
        .slice(1)
        .map((name) => [
          name.startsWith("engine/")
            ? `${engine}${name.slice("engine/".length)}/a.ts`
            : `${name === "cli/src" ? clientCommands : `${source}${name}/`}a.ts`,
          "",
        ]),
    ),
  },
  {
    name: "ARCHITECTURE.md names every folder",
    violations: (files) => {
      const described = files.get("ARCHITECTURE.md") ?? "";
      const folders = new Set([...files.keys()].flatMap(foldersOf));
      const missing = [...folders].filter((folder) => !described.includes(`\`${folder}/\``));
      const named = [...described.matchAll(/^\| `([^`]+)\/` \|/gm)].map(([, folder]) => folder!);
      return [
        ...missing.map((folder) => `ARCHITECTURE.md does not name ${folder}/: say what it contains.`),
        ...named
          .filter((folder) => !folders.has(folder))
          .map((folder) => `ARCHITECTURE.md names ${folder}/: remove it.`),
      ];
    },
    example: { "ARCHITECTURE.md": "| `api/` |", "api/a.md": "", "docs/a.md": "" },
  },
  {
    name: "documents name files that exist",
    violations: (files) =>
      [...files].flatMap(([path, text]) =>
        /^([A-Z]+|decisions\/.*|docs\/.*)\.md$/.test(path)
          ? [...text.matchAll(/`([\w./-]+\/[\w.-]+\.ts)`/g)]
              .filter(([, named]) => !files.has(named!) && !files.has(source + named))
              .map(([, named]) => `${path} names ${named}, which does not exist: correct it.`)
          : [],
      ),
    example: { "ARCHITECTURE.md": "`server/test/a.ts` and `rpc/b.ts`", "server/test/a.ts": "" },
  },
  {
    name: "a decision has its number and its sections",
    violations: (files) =>
      [...files].flatMap(([path, text]) => {
        const number = /^decisions\/(\d{3})-[a-z0-9-]+\.md$/.exec(path)?.[1];
        if (number === undefined) return path.startsWith("decisions/") ? [`${path}: call it NNN-title.md.`] : [];
        const headings = ["## Decision", "## Alternatives", "## When to look again"];
        const lines = text.split("\n");
        const missing = headings.filter((heading) => !lines.includes(heading));
        if (!text.startsWith(`# ${number} `)) missing.unshift(`# ${number} <title>`);
        return missing.map((heading) => `${path} has no "${heading}": add it.`);
      }),
    example: { "decisions/010-a.md": "# 009 A\n\n## Decision\n\n## Alternatives\n\n## When to look again\n" },
  },
  {
    name: "closed folders are imported by their visitors only",
    violations: (files) =>
      everyImport(files)
        .filter(
          ([from, to]) => folderOf(from) !== folderOf(to) && visitors[folderOf(to)]?.includes(folderOf(from)) === false,
        )
        .map(([from, to]) => `${from} imports ${to}: take the value as an argument; the service hands it over.`),
    example: { "server/src/platform/http/a.ts": 'import type { Config } from "../config/config.ts";' },
  },
  {
    name: "the start of the service loads no client command",
    violations: (files) => {
      const loaded = new Set([`${source}main.ts`, `${source}cli/operator/serve.ts`]);
      for (const path of loaded) for (const target of loadedWith(path, files.get(path) ?? "")) loaded.add(target);
      return [...loaded]
        .filter((path) => path.startsWith(clientCommands) && !loadedAtStart.includes(path))
        .map((path) => `The start of the service loads ${path}: import it with \`await import()\` where it is needed.`);
    },
    example: {
      "server/src/main.ts": 'import "./cli/program.ts";',
      "server/src/cli/program.ts": 'import { call } from "../../../cli/src/call.ts";',
    },
  },
  {
    name: "features use the statements and records of others, and what is below them",
    violations: (files) =>
      everyImport(files)
        .filter(([from, to]) => !mayUse(from, to))
        .map(
          ([from, to]) =>
            `${from} imports ${to} of another feature: use its statements or its record, or name both features in featureOrder.`,
        ),
    example: { "server/src/features/webhooks/a.ts": 'import { createKey } from "../keys/createKey.ts";' },
  },
  ...homes.map(({ name, what, places, instead, violation }) => ({
    name: `${name} lives in ${places.join(", ")}`,
    violations: (files: Files) =>
      programFiles(files)
        .filter(([path, text]) => !places.some((place) => isIn(path, place)) && what.test(code(text)))
        .map(([path, text]) => `${path} says ${code(text).match(what)![0]}: ${instead}.`),
    example: { "server/src/verification/a.ts": violation },
  })),
  {
    name: "a class of statements that writes says so",
    violations: (files) =>
      programFiles(files).flatMap(([path, text]) =>
        [...code(text).matchAll(/\bclass (\w+Writer) extends \w+ \{(?!\s*static readonly writes = true;)/g)]
          .filter(([, name]) => !notOfWorkspace.includes(name!))
          .map(([, name]) => `${path}: ${name} lacks "static readonly writes = true;": queries could ask for it.`),
      ),
    example: { "server/src/store/a.ts": "export class KeyWriter extends KeyReader {\n  delete() {}\n}" },
  },
  {
    name: "an operation's path is its name",
    violations: (files) =>
      programFiles(files)
        .filter(([path]) => path.startsWith(`${source}features/`))
        .flatMap(([path, text]) => {
          // A list uses its name before its declaration: its cursors contain the name.
          const list = /\bconst LIST = "([^"]*)"/.exec(code(text))?.[1];
          const declarations = code(text).matchAll(/\bexport const \w+ = \w+\(\s*(?:"([^".]*\.[^"]*)"|LIST\b)/g);
          const declared = [...declarations].flatMap(([, name = list]) => name ?? []);
          const misplaced = declared.filter((name) => path !== operationPath(name));
          // Files that operations share have lower-case names (record.ts); capitals are for the names of operations.
          if (declared.length === 0 && /[A-Z]/.test(posix.basename(path))) {
            return [`${path} declares no operation: name it in kebab-case after its content.`];
          }
          return misplaced.map((name) => `${path} declares "${name}": its place is ${operationPath(name)}.`);
        }),
    example: { "server/src/features/keys/verifyKey.ts": 'export const verifyKey = metered("keys.verify", {' },
  },
  {
    name: "no file is unused",
    violations: (files) => {
      // The client that decides in its process is bundled with the engine.
      const reached = new Set([`${source}main.ts`, "sdk/src/local.ts"]);
      // Iterating a set includes members that are added meanwhile.
      for (const path of reached) for (const target of importsOf(path, files.get(path) ?? "")) reached.add(target);
      return programFiles(files)
        .filter(([path]) => !reached.has(path) && !forTests.includes(path))
        .map(
          ([path]) =>
            `${path} is reached neither from main.ts nor from the SDK: import it where it is needed, or delete it.`,
        );
    },
    example: { "server/src/main.ts": 'import "./cli/serve.ts";', "server/src/cli/other.ts": "" },
  },
  {
    name: "no files import each other in a circle",
    violations: (files) =>
      importCircles(files).map(
        (circle) => `${circle.join(" imports ")} imports ${circle[0]}: move what they share into a file of its own.`,
      ),
    example: {
      "server/src/limits/a.ts": 'import { b } from "./b.ts";',
      "server/src/limits/b.ts": 'import type { C } from "./c.ts";',
      "server/src/limits/c.ts": 'import { a } from "./a.ts";',
    },
  },
  {
    name: "quick tests do not sleep",
    violations: (files) =>
      [...files]
        .filter(
          ([path, text]) => /(?<!\.slow)\.test\.ts$/.test(path) && /\bawait setTimeout\(|\bsleep\(/.test(code(text)),
        )
        .map(([path]) => `${path} sleeps: advance the clock, or wait with eventually() for what it expects.`),
    example: { "server/src/limits/a.test.ts": ["await set", "Timeout(50);"].join("") },
  },
  {
    name: "tests of the dashboard wait for what they expect",
    violations: (files) =>
      [...files]
        .filter(([path]) => /^dashboard\/test\/.*\.test\.ts$/.test(path))
        .flatMap(([path, text]) =>
          hasty.filter(({ what }) => what.test(code(text))).map(({ instead }) => `${path} ${instead}.`),
        ),
    example: { "dashboard/test/a.test.ts": "assert.equal(await page.getByRole('row').count(), 2);\n" },
  },
  {
    name: "assertions that the compiler does not check become fewer",
    violations: (files) => {
      const listed: Record<string, number> = JSON.parse(files.get(assertionsFile) ?? "{}");
      const counted = new Map(
        [...files]
          .filter(([path]) => /^(engine|cli|server|sdk|dashboard)\/src\/.*(?<!\.test)\.tsx?$/.test(path))
          .map(([path, text]) => [path, code(text).match(assertion)?.length ?? 0]),
      );
      return [...new Set([...counted.keys(), ...Object.keys(listed)])].flatMap((path) => {
        const [count = 0, limit = 0] = [counted.get(path), listed[path]];
        if (count === limit) return [];
        const remedy = count > limit ? "let a type say it" : `list ${count === 0 ? "it no longer" : "this number"}`;
        return [`${path} has ${count} times \`!\` or \`as never\`, and ${limit} in ${assertionsFile}: ${remedy}.`];
      });
    },
    example: { "server/src/limits/a.ts": "const first = charges[0]!;" },
  },
  {
    name: "nothing is left for later",
    violations: textMatches(/\b(TO[D]O|FIX[M]E)\b/, "do it, or write down in an issue why not yet"),
    example: { "docs/a.md": ["TO", "DO: explain"].join("") },
  },
  {
    name: "nothing names a place of one machine",
    violations: textMatches(
      /(?<![\w.:/-])\/(work|tmp)\/[\w.-]+/,
      "name it relative to the repository, or ask os.tmpdir()",
    ),
    example: { "docs/a.md": `cd ${["", "work", "main"].join("/")}` },
  },
  {
    name: "nothing names a registry",
    violations: textMatches(
      /registry\.npmjs/,
      "leave the registry to each machine's npm (omit-lockfile-registry-resolved=true)",
    ),
    example: { "package-lock.json": `"resolved": "https://${["registry", "npmjs.org"].join(".")}/pg"` },
  },
];

describe("tidy", () => {
  const files = repository();
  for (const { name, violations, example } of rules) {
    describe(name, () => {
      it("finds no violation", () => {
        const found = violations(files);
        assert.equal(found.length, 0, found.join("\n"));
      });
      it("detects a violation", () => assert.equal(violations(new Map(Object.entries(example))).length, 1));
    });
  }

  it("parses every kind of import", () => {
    const text = `
      import { a } from "./a.ts";
      import type { B } from "../b/b.ts";
      import "./c.ts";
      export { d } from "./d.ts";
      const e = await import("./e.ts");
      const f = new Worker(new URL("./f.ts", import.meta.url));
      import fastify from "fastify"; // import "./not-this.ts";
      /* import "./nor-this.ts"; */ const url = "http://import/";
    `;
    const expected = ["log/a.ts", "b/b.ts", "log/c.ts", "log/d.ts", "log/e.ts", "log/f.ts"];
    assert.deepEqual(
      importsOf(`${source}log/x.ts`, text),
      expected.map((path) => source + path),
    );
  });
});

/** The violations of all files in the repository whose text matches `what`. */
function textMatches(what: RegExp, instead: string): Rule["violations"] {
  return (files) =>
    [...files].flatMap(([path, text]) => {
      const said = text.match(what);
      return said ? [`${path} says ${said[0]}: ${instead}.`] : [];
    });
}

/** The text files of this repository, including those that are new and not ignored. */
function repository(): Files {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  // The folder may belong to another user, as in a container; listing files is safe anyway.
  const listing = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const paths = execFileSync("git", listing, { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);
  const present = [...new Set(paths)].filter((path) => existsSync(join(root, path)));
  const texts = present.map((path) => [path, readFileSync(join(root, path), "utf8")] as const);
  return new Map(texts.filter(([, text]) => !text.includes("\0")));
}

/** The folders of a file that ARCHITECTURE.md describes: those of server/src, server/test, engine/src and cli/src with their folders. */
function foldersOf(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  const hasFolders = ["server/test/", engine, clientCommands].some((start) => path.startsWith(start));
  const depth = path.startsWith(source) ? 4 : hasFolders ? 3 : 2;
  return parts.slice(0, depth).map((_, i) => parts.slice(0, i + 1).join("/"));
}

/** The sources that run in production. */
function programFiles(files: Files): [string, string][] {
  return [...files].filter(([path]) => isProgram(path) && path.endsWith(".ts") && !path.endsWith(".test.ts"));
}

function everyImport(files: Files): [from: string, to: string][] {
  return programFiles(files).flatMap(([path, text]) => importsOf(path, text).map((to): [string, string] => [path, to]));
}

/** Whether a file of a feature may import a file of another one. */
function mayUse(from: string, to: string): boolean {
  const [user, used] = [from, to].map((path) => /^server\/src\/features\/([^/]+)\//.exec(path)?.[1]);
  if (user === undefined || used === undefined || user === used) return true;
  const [using, part] = [rankOf(from), rankOf(to)];
  if (part < 2) return part <= using;
  return using === 2 && featureOrder.includes(user) && featureOrder.indexOf(user) < featureOrder.indexOf(used);
}

/** 0: statements, 1: the record of a feature, 2: everything above them. */
function rankOf(path: string): number {
  if (/^server\/src\/features\/[^/]+\/statements[./]/.test(path)) return 0;
  return path.endsWith("/record.ts") ? 1 : 2;
}

/** Whether the file is one of the program, or a test of it. */
function isProgram(path: string): boolean {
  return [source, engine, clientCommands].some((start) => path.startsWith(start));
}

/** Whether a file is in a place: the beginning of a path below `server/src/` or in another workspace; `*` is any folder. */
function isIn(path: string, place: string): boolean {
  const [start, rest] = (isProgram(place) ? place : source + place).split("*") as [string, string?];
  if (!path.startsWith(start)) return false;
  return rest === undefined || path.slice(path.indexOf("/", start.length)).startsWith(rest);
}

/** Import circles, including those of types: at least one if there are any. */
function importCircles(files: Files): string[][] {
  const targets = new Map(
    [...files]
      .filter(([path]) => /^(engine|cli|server|dashboard)\/src\/.*\.tsx?$/.test(path))
      .map(([path, text]) => [path, importsOf(path, text)]),
  );
  const finished = new Set<string>();
  const circles: string[][] = [];
  const visit = (path: string, chain: readonly string[]) => {
    const start = chain.indexOf(path);
    if (start !== -1) circles.push(chain.slice(start));
    if (start !== -1 || finished.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...chain, path]);
    finished.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return circles;
}

/** The files of this repository that a source names, as paths in the repository. */
function importsOf(path: string, text: string): string[] {
  const named = code(text).matchAll(/(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*"(\.[^"]*)"/g);
  return [...named]
    .map(([, target]) => posix.join(posix.dirname(path), target!))
    .filter((target) => /\.tsx?$/.test(target));
}

/** The files that a source imports as values when it is loaded. */
function loadedWith(path: string, text: string): string[] {
  return importsOf(path, code(text).replaceAll(/^(import|export) type [^;]*;|\bimport\([^)]*\)/gm, ""));
}

/** A source without its comments. */
function code(text: string): string {
  return text.replace(/\/\*.*?\*\/|(?<=^|\s)\/\/[^\n]*/gs, "");
}

/** The name of the room of a file, as in `floors`. */
function folderOf(path: string): string {
  if (path.startsWith(engine)) return `engine/${path.split("/")[2]}`;
  if (path.startsWith(clientCommands)) return "cli/src";
  const [first, second] = path.slice(source.length).split("/") as [string, string?];
  return nameOfFile[first] ?? (first === "platform" ? `platform/${second}` : first);
}

function floorOf(name: string): number {
  return floors.findIndex((names) => names.includes(name));
}

function operationPath(name: string): string {
  return `${source}features/${name.replaceAll(".", "/")}.ts`;
}
