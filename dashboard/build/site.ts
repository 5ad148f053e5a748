import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin, Rolldown } from "vite";
import { printSite } from "./pages/site.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** The script of the pages. Its styles and its chunks come with it. */
const SCRIPT = join(root, "dashboard/src/reader/reader.ts");
/** A script that runs before the page is painted, so no module. */
const THEME = join(root, "dashboard/src/reader/theme.js");

/** Writes the pages of `/docs` and `/reference`, and `llms.txt`. */
export function site(): Plugin {
  return {
    name: "site",
    apply: "build",
    enforce: "post",
    buildStart() {
      this.emitFile({ type: "chunk", id: SCRIPT, name: "reader" });
    },
    generateBundle(_, bundle) {
      const asset = (name: string, source: string) => this.getFileName(this.emitFile({ type: "asset", name, source }));
      const script = Object.values(bundle).find(
        (file): file is Rolldown.OutputChunk => file.type === "chunk" && file.facadeModuleId === SCRIPT,
      );
      const style = script && stylesOf(script, bundle)[0];
      if (!script || !style) throw new Error("The build has no script or no style of the pages.");
      const printed = printSite(root, {
        style,
        script: script.fileName,
        theme: asset("theme.js", readFileSync(THEME, "utf8")),
        search: (text) => asset("search.json", text),
      });
      for (const [fileName, source] of printed) this.emitFile({ type: "asset", fileName, source });
    },
  };
}

/** The style sheets of a chunk and of those that it imports. */
function stylesOf(chunk: Rolldown.OutputChunk, bundle: Rolldown.OutputBundle): string[] {
  const imported = chunk.imports.flatMap((name) => {
    const file = bundle[name];
    return file?.type === "chunk" ? stylesOf(file, bundle) : [];
  });
  return [...(chunk.viteMetadata?.importedCss ?? []), ...imported];
}
