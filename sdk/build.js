/**
 * Builds the package: ES modules in `dist`, CommonJS in `dist/cjs`, each with declarations and source maps. `local` is bundled
 * with the engine, which is no package of its own.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// Node 20 before 20.11 has no `import.meta.dirname`.
const folder = dirname(fileURLToPath(import.meta.url));
const compiler = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

rmSync(join(folder, "dist"), { recursive: true, force: true });
for (const project of ["tsconfig.json", "tsconfig.cjs.json"]) {
  execFileSync(process.execPath, [compiler, "--project", join(folder, project)], { stdio: "inherit" });
}
execFileSync(process.execPath, [join(folder, "bundle-local.js"), join(folder, "dist")], { stdio: "inherit" });
// Node and TypeScript read `.js` files by the nearest package.json.
writeFileSync(join(folder, "dist/cjs/package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
copyFileSync(join(folder, "../LICENSE"), join(folder, "LICENSE"));
