/** A copy of the repository that a test can change, with the packages of the original. */
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../", import.meta.url));
const copied = ["package.json", "package-lock.json", "LICENSE", "server/package.json", "server/README.md"];
copied.push("api/openapi.json", "dashboard/index.html", "dashboard/package.json", "dashboard/vite.config.ts");
copied.push("dashboard/tsconfig.json", "tsconfig.json", "sdk/package.json", "engine/package.json", "cli/package.json");
copied.push(
  "CHANGELOG.md",
  "api/permissions.md",
  "api/problems.md",
  "clients/go/README.md",
  "clients/python/README.md",
);
copied.push("examples/image-api/README.md", "examples/llm-gateway/README.md", "examples/litellm-proxy/README.md");
copied.push("sdk/README.md");
const copiedFolders = ["engine/src", "cli/src", "server/src", "server/build", "server/bin", "sdk/src"];
copiedFolders.push("dashboard/src", "dashboard/build", "dashboard/public", "docs");

/** Copies what the command and its package are made from into an empty folder. Returns the path of `server/` there. */
export function copyRepository(root: string): string {
  for (const path of [...copied, ...copiedFolders]) {
    cpSync(join(repository, path), join(root, path), { recursive: true });
  }
  symlinkSync(join(repository, "node_modules"), join(root, "node_modules"));
  return join(root, "server");
}
