import { existsSync } from "node:fs";
import { registerHooks } from "node:module";

/**
 * Replaces parts of a module of this repository when it is loaded. Throws if there is no such module, or when it is loaded
 * without one of the parts: a plant that no longer changes anything would prove nothing.
 */
export function patchModule(path: string, replacements: Readonly<Record<string, string>>): void {
  const target = new URL(`../../../../${path}`, import.meta.url);
  if (!existsSync(target)) throw new Error(`There is no ${path} to be patched`);
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (url !== target.href) return loaded;
      let source = String(
        loaded.source instanceof Uint8Array ? new TextDecoder().decode(loaded.source) : loaded.source,
      );
      for (const [part, replacement] of Object.entries(replacements)) {
        if (source.split(part).length !== 2) throw new Error(`${path} must have this once, to be patched: ${part}`);
        source = source.replace(part, () => replacement);
      }
      return { ...loaded, source };
    },
  });
}
