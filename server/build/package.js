// Before `npm pack`: writes the bundle to `dist/`, and the licences of what it contains.
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.js";
import { buildDashboard } from "./dashboard.js";

const server = fileURLToPath(new URL("../", import.meta.url));

const dist = join(server, "dist");
rmSync(dist, { recursive: true, force: true });
const bundled = await bundle(dist, { complete: true });
bundled.push(...(await buildDashboard(join(dist, "dashboard"))));
writeFileSync(join(server, "THIRD-PARTY-NOTICES"), notices(bundled));
copyFileSync(join(server, "../LICENSE"), join(server, "LICENSE"));

/** The name, version and licence text of every package that these files belong to. */
function notices(files) {
  const folders = new Set(files.map((file) => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(file)[0]));
  const packages = [...folders].map((folder) => ({ folder, ...readJson(join(folder, "package.json")) }));
  packages.sort((a, b) => (a.name < b.name ? -1 : 1));
  const texts = packages.map(({ folder, name, version, license, author }) => {
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
    const own = files.map((file) => readFileSync(join(folder, file), "utf8").trim());
    // Some packages name the MIT licence and leave its text out.
    if (own.length === 0 && license === "MIT") own.push(mit(author?.name ?? author ?? `the authors of ${name}`));
    if (own.length === 0) throw new Error(`${name} ${version} has no licence text: add it here`);
    return [`${name} ${version} (${license})`, ...own].join("\n\n");
  });
  const introduction = "Latchkey contains these packages, whole or in parts.";
  return `${[introduction, ...texts].join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}

function mit(author) {
  return `Copyright (c) ${author}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;
}

function readJson(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}
