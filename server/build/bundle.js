// Bundles the program: the files of the main thread, those of the other threads, and files that are loaded when they
// are needed.
import { copyFileSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { buildElement } from "./element.js";

const source = fileURLToPath(new URL("../src/", import.meta.url));

/** Maps the lines of stack traces to the sources. Every thread loads it first. */
const STACKS = "stacks.mjs";

/** The element of the portal, which browsers load. */
const ELEMENT = "latchkey-keys.mjs";

/** The files that start the main thread and the threads that answer calls, by name. They share most of their code. */
const answering = {
  main: join(source, "main.ts"),
  "service-workers-worker": join(source, "service/workers/worker.ts"),
};

/** Packages that Fastify loads for routes with schemas, and ours have none. */
const unused = fileURLToPath(new URL("unused.js", import.meta.url));
const unusedPackages = { "@fastify/ajv-compiler": unused, "@fastify/fast-json-stringify-compiler": unused };

/** Modules of Node that these packages load at their start, for options that the service does not set. */
const unusedModules = { fastify: ["node:https", "node:http2"], "prom-client": ["https"] };

/**
 * Writes the bundle into `folder`, with `main.mjs` as its start. `complete`: with every package in it; otherwise, packages
 * that few services load stay in node_modules, because they take most of the time. Returns the bundled files of packages.
 */
export async function bundle(folder, { complete }) {
  const external = complete ? [] : ["@clickhouse/client", "@redis/client"];
  const threadFiles = new Map();
  const main = await build(folder, answering, external, {
    plugins: [separateThreads(threadFiles), withoutUnusedModules],
    resolve: { alias: unusedPackages },
  });
  for (const name of Object.keys(answering)) threadFiles.delete(name);
  const threads = await build(folder, Object.fromEntries(threadFiles), external, {
    // Calls are validated before a database thread gets them. Schemas would take a third of a thread's memory.
    resolve: { alias: { zod: fileURLToPath(new URL("no-schemas.js", import.meta.url)) } },
  });
  copyFileSync(new URL(STACKS, import.meta.url), join(folder, STACKS));
  writeFileSync(join(folder, ELEMENT), await buildElement());
  return [...new Set([...main, ...threads])];
}

async function build(folder, input, external, options) {
  const parts = new Map();
  await withBundler({ input, external, options }, [findParts(parts)], (bundler) => bundler.generate(output));
  const modules = await withBundler(
    { input, external, options: { ...options, preserveEntrySignatures: "allow-extension" } },
    [withoutFacades, asciiOnly, withoutForeignMaps],
    (bundler) =>
      bundler.write({
        ...output,
        dir: folder,
        sourcemap: true,
        sourcemapExcludeSources: true,
        entryFileNames: "[name].mjs",
        chunkFileNames: "[name]-[hash].mjs",
        banner: ({ isEntry }) => (isEntry ? `import "./${STACKS}";` : ""),
        codeSplitting: {
          groups: [{ debugName: "parts", name: (id) => parts.get(id) ?? null, includeDependenciesRecursively: false }],
        },
      }),
  );
  return modules.filter((id) => id.includes("node_modules"));
}

const output = {
  format: "esm",
  // Statements stay on their lines: Node prints the line of an uncaught error.
  minify: "dce-only",
  comments: false,
};

/** Bundles, and returns the modules of all files. */
async function withBundler({ input, external, options }, plugins, work) {
  const bundler = await rolldown({
    ...options,
    input,
    platform: "node",
    plugins: [...(options.plugins ?? []), ...plugins],
    // `pg` loads this package only on request.
    external: ["pg-native", ...external],
    logLevel: "warn",
    onLog(_, log) {
      throw new Error(`The bundler reports: ${log.message ?? log}`);
    },
  });
  try {
    const { output: files } = await work(bundler);
    return files.flatMap(({ moduleIds = [] }) => moduleIds);
  } finally {
    await bundler.close();
  }
}

/**
 * The length of a file at which its next module begins another one. The C library keeps as much freed memory as twice the
 * largest buffer that was freed, in each thread, and Node reads a file into one: with a file of 940 kB, the service was
 * 11 MiB larger at rest. Files of 100 kB make it no smaller, and its start takes 0.08 s more.
 */
const PART_MAX = 350_000;

/**
 * Finds out how to divide the files that would be longer, and puts the name of a part for each of their modules into `parts`.
 * The parts keep the order in which the modules run: none is divided between two that import each other.
 */
function findParts(parts) {
  return {
    name: "find-parts",
    generateBundle(_, files) {
      for (const { name, code = "", moduleIds = [], modules } of Object.values(files)) {
        if (code.length <= PART_MAX) continue;
        const place = new Map(moduleIds.map((id, i) => [id, i]));
        let [part, length, last] = [0, 0, 0];
        for (const [i, id] of moduleIds.entries()) {
          const added = modules[id].renderedLength;
          if (length > 0 && length + added > PART_MAX && last < i) [part, length] = [part + 1, 0];
          length += added;
          last = Math.max(last, ...this.getModuleInfo(id).importedIds.map((imported) => place.get(imported) ?? 0));
          parts.set(id, `${name}-${part}`);
        }
      }
    },
  };
}

/** Makes a file of its own of each source that `new URL("./….ts", import.meta.url)` names, and collects these files. */
function separateThreads(files) {
  return {
    name: "separate-threads",
    transform: {
      filter: { id: /\.ts$/, code: "import.meta.url" },
      handler(code, id) {
        const rewritten = code.replaceAll(/new URL\("(\.[^"]*)\.ts", import\.meta\.url\)/g, (_, path) => {
          const file = resolve(dirname(id), `${path}.ts`);
          const name = file.slice(source.length, -".ts".length).replaceAll(/[\\/]/g, "-");
          files.set(name, file);
          return `new URL("./${name}.mjs", import.meta.url)`;
        });
        // Null: the source map stays valid, because no line moves.
        return { code: rewritten, map: null };
      },
    },
  };
}

const EMPTY = "\0empty";

/** Replaces `unusedModules` by an empty module: they bring TLS and HTTP/2 with them. */
const withoutUnusedModules = {
  name: "without-unused-modules",
  resolveId: {
    filter: { id: /^(?:node:)?http(?:s|2)$/ },
    handler(id, importer = "") {
      const path = importer.replaceAll("\\", "/");
      const isUnused = ([name, modules]) => path.includes(`/node_modules/${name}/`) && modules.includes(id);
      return Object.entries(unusedModules).some(isUnused) ? EMPTY : null;
    },
  },
  load: { filter: { id: /^\0empty$/ }, handler: () => "export {};" },
};

/**
 * Gets the modules of Node from the process. An `import` reads every export of such a module, and some of them load more:
 * `node:http` would load the implementation of `fetch`.
 */
const withoutFacades = {
  name: "without-facades",
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== "chunk") continue;
      // What a part imports only to keep an order: a module of Node has none.
      file.code = file.code.replaceAll(/^import "node:[^"]+";$/gm, "");
      file.code = file.code.replaceAll(/^import ([^"]+) from "([^"]+)";$/gm, (statement, names, id) => {
        if (!isBuiltin(id)) return statement;
        // `a`, `* as a`, `{ a, b as c }`, or the first one with one of the others.
        const targets = names.match(/\{.*\}|[\w$* ]+/g).filter((name) => name.trim() !== "");
        const patterns = targets.map((name) => name.replace("* as ", "").replaceAll(" as ", ": "));
        const module = `globalThis.process.getBuiltinModule("${id}")`;
        return `const ${patterns.map((pattern) => `${pattern.trim()} = ${module}`).join(", ")};`;
      });
    }
  },
};

/** Escapes characters beyond ASCII: with one of them, Node stores the text of a file with two bytes per character. */
const asciiOnly = {
  name: "ascii-only",
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== "chunk") continue;
      const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
      file.code = file.code.replaceAll(/[^\0-\x7f]/g, escaped);
    }
  },
};

/** Leaves out the source maps of files that have code of packages only: a tenth of the bundle, and nobody debugs them here. */
const withoutForeignMaps = {
  name: "without-foreign-maps",
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== "chunk" || !file.moduleIds.every((id) => id.includes("node_modules"))) continue;
      delete files[`${file.fileName}.map`];
      file.code = file.code.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");
    }
  },
};
