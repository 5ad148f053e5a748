// Bundles the program: one file for the main thread, one for each purpose of a thread, and files that are loaded when
// they are needed.
import { copyFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const source = fileURLToPath(new URL("../src/", import.meta.url));

/** Maps the lines of stack traces to the sources. Every thread loads it first. */
const STACKS = "stacks.mjs";

/**
 * Writes the bundle into `folder`, with `main.mjs` as its start. `complete`: with every package in it; otherwise, packages
 * that few services load stay in node_modules, because they take most of the time. Returns the bundled files of packages.
 */
export async function bundle(folder, { complete }) {
  const build = await rolldown({
    input: { main: join(source, "main.ts") },
    platform: "node",
    // `pg` loads this package only on request.
    external: ["pg-native", ...(complete ? [] : [/^@scalar\//, "@clickhouse/client", "redis"])],
    plugins: [threadFiles],
    logLevel: "warn",
    onLog(_, log) {
      throw new Error(`The bundler reports: ${log.message ?? log}`);
    },
  });
  try {
    const { output } = await build.write({
      dir: folder,
      format: "esm",
      sourcemap: true,
      sourcemapExcludeSources: true,
      // Statements stay on their lines: Node prints the line of an uncaught error.
      minify: "dce-only",
      entryFileNames: "[name].mjs",
      chunkFileNames: "[name]-[hash].mjs",
      banner: ({ isEntry }) => (isEntry ? `import "./${STACKS}";` : ""),
    });
    copyFileSync(new URL(STACKS, import.meta.url), join(folder, STACKS));
    return output.flatMap(({ moduleIds = [] }) => moduleIds).filter((id) => id.includes("node_modules"));
  } finally {
    await build.close();
  }
}

/** Makes a file of its own of each source that `new URL("./….ts", import.meta.url)` names, such as those of threads. */
const threadFiles = {
  name: "thread-files",
  transform: {
    filter: { id: /\.ts$/, code: "import.meta.url" },
    handler(code, id) {
      const rewritten = code.replaceAll(/new URL\("(\.[^"]*)\.ts", import\.meta\.url\)/g, (_, path) => {
        const file = resolve(dirname(id), `${path}.ts`);
        const name = file.slice(source.length, -".ts".length).replaceAll("/", "-");
        const reference = this.emitFile({ type: "chunk", id: file, name });
        return `new URL(import.meta.ROLLUP_FILE_URL_${reference})`;
      });
      // Null: the source map stays valid, because no line moves.
      return { code: rewritten, map: null };
    },
  },
};
