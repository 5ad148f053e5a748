import { registerHooks } from "node:module";

/**
 * Replaces parts of a module of `server/src` when it is loaded. Throws then if the module does not have one of them: a plant
 * that no longer changes anything would prove nothing.
 */
export function patchModule(path: string, replacements: Readonly<Record<string, string>>): void {
  const target = new URL(`../../../src/${path}`, import.meta.url).href;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (url !== target) return loaded;
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
