import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/**
 * An entry point of the package, such as `index` or `hono`, as one minified module, or as a script that sets the variable
 * `sdk`. The framework is not in it.
 */
export async function bundleEntry(entry: string, format: "esm" | "iife" = "esm"): Promise<string> {
  const bundler = await rolldown({
    input: fileURLToPath(new URL(`../src/${entry}.ts`, import.meta.url)),
    platform: "neutral",
    external: /^(?:hono|react|node:\w+)\b/,
  });
  try {
    const { output } = await bundler.generate({ format, name: "sdk", minify: true });
    return output[0].code;
  } finally {
    await bundler.close();
  }
}
