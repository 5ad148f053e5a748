/** Bundles `local` with the engine into a folder with the rest of the package, as both kinds of modules, with declarations. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const [, , dist] = process.argv;
const folder = dirname(fileURLToPath(import.meta.url));
const source = join(folder, "src");

const bundler = await rolldown({
  input: join(source, "local.ts"),
  platform: "node",
  tsconfig: false,
  plugins: [
    {
      // Its classes must be those of the other files, so it imports them instead of having copies.
      name: "files-of-the-package",
      resolveId: (id, importer) =>
        id.startsWith("./") && importer !== undefined && dirname(importer) === source
          ? { id: id.replace(/\.ts$/, ".js"), external: "relative" }
          : null,
    },
  ],
  onLog(_, log) {
    throw new Error(`The bundler reports: ${log.message ?? log}`);
  },
});
await bundler.write({ file: join(dist, "local.js"), format: "esm", sourcemap: true });
mkdirSync(join(dist, "cjs"), { recursive: true });
await bundler.write({ file: join(dist, "cjs/local.js"), format: "cjs", sourcemap: true, exports: "named" });
await bundler.close();

// Its declarations name nothing of the engine.
const compiler = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
const declarations = mkdtempSync(join(tmpdir(), "latchkey-sdk-"));
const project = join(folder, "tsconfig.local.json");
execFileSync(process.execPath, [compiler, "--project", project, "--outDir", declarations], { stdio: "inherit" });
for (const place of [dist, join(dist, "cjs")]) {
  copyFileSync(join(declarations, "sdk/src/local.d.ts"), join(place, "local.d.ts"));
}
rmSync(declarations, { recursive: true });
