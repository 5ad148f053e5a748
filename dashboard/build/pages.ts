import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";

const ROUTES = fileURLToPath(new URL("../src/routes.tsx", import.meta.url));

/**
 * Writes `pages.json`: the paths of the pages in `routes.tsx`, such as `/apis/$apiId`. The service answers 404 at other
 * paths.
 */
export function pages(): Plugin {
  return {
    name: "pages",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "pages.json", source: JSON.stringify(pathsIn(ROUTES)) });
    },
  };
}

function pathsIn(file: string): string[] {
  const [, ...routes] = readFileSync(file, "utf8").split("createRoute({");
  return routes.flatMap((route) => {
    const [, kind, value] = /^\s*getParentRoute: \(\) => \w+,\s*(path|id): "([^"]+)"/.exec(route) ?? [];
    if (value === undefined) throw new Error("A route in routes.tsx has no path after its parent.");
    return kind === "path" ? [value] : [];
  });
}
