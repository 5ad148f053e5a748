/**
 * Builds the package: ES modules in `dist`, CommonJS in `dist/cjs`, each with declarations and source maps. `local` is bundled
 * with the engine, which is no package of its own.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

// Node 20 before 20.11 has no `import.meta.dirname`.
const folder = dirname(fileURLToPath(import.meta.url));
const compiler = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

rmSync(join(folder, "dist"), { recursive: true, force: true });
for (const project of ["tsconfig.json", "tsconfig.cjs.json", "tsconfig.local.json"]) {
  execFileSync(process.execPath, [compiler, "--project", join(folder, project)], { stdio: "inherit" });
}
await bundleLocal();
// Node and TypeScript read `.js` files by the nearest package.json.
writeFileSync(join(folder, "dist/cjs/package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
copyFileSync(join(folder, "../LICENSE"), join(folder, "LICENSE"));

/** Its classes must be those of the other files, so it imports them instead of having copies. */
async function bundleLocal() {
  const source = join(folder, "src");
  const bundler = await rolldown({
    input: join(source, "local.ts"),
    platform: "node",
    tsconfig: false,
    plugins: [
      {
        name: "sdk-files",
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
  await bundler.write({ file: join(folder, "dist/local.js"), format: "esm" });
  await bundler.write({ file: join(folder, "dist/cjs/local.js"), format: "cjs", exports: "named" });
  await bundler.close();
  // Its declarations name nothing of the engine.
  for (const place of ["dist", "dist/cjs"]) {
    copyFileSync(join(folder, "dist/local/sdk/src/local.d.ts"), join(folder, place, "local.d.ts"));
  }
  rmSync(join(folder, "dist/local"), { recursive: true });
}
