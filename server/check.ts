/**
 * `npm run check`: types of each project, lint and format; `npm run types` the types alone. Two run at a time. TypeScript
 * keeps what it knows of unchanged files in `.cache/types`.
 */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../engine/src/clock/system.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const projects = [".", "dashboard/test", "dashboard", "sdk", "examples/image-api", "examples/llm-gateway"];

const checks = projects.map((project) => {
  const known = join(".cache", "types", `${project === "." ? "root" : project.replaceAll("/", "-")}.tsbuildinfo`);
  return {
    name: `types of ${project}`,
    command: `tsc --noEmit --incremental --tsBuildInfoFile ${known} -p ${project}`,
  };
});
if (!process.argv.includes("--types")) {
  checks.unshift({ name: "lint and format", command: "biome check --error-on-warnings ." });
}

const waiting = [...checks];
await Promise.all(Array.from({ length: availableParallelism() }, work));

async function work(): Promise<void> {
  for (let check = waiting.shift(); check; check = waiting.shift()) {
    const startedAt = systemClock.monotonic();
    const { code, output } = await execute(check.command);
    const seconds = ((systemClock.monotonic() - startedAt) / 1_000).toFixed(1);
    console.log(`${code === 0 ? "passed" : "FAILED"}  ${check.name}  ${seconds} s`);
    if (code === 0) continue;
    process.exitCode = 1;
    console.log(output);
  }
}

/** Runs a program of this repository's packages. */
function execute(command: string): Promise<{ code: number | null; output: string }> {
  const [program, ...args] = command.split(" ");
  const child = spawn(join(root, "node_modules", ".bin", program!), args, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}
