import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/** The client as one minified module. */
export async function bundleClient(): Promise<string> {
  const bundler = await rolldown({
    input: fileURLToPath(new URL("../src/index.ts", import.meta.url)),
    platform: "neutral",
  });
  try {
    const { output } = await bundler.generate({ format: "esm", minify: true });
    return output[0].code;
  } finally {
    await bundler.close();
  }
}
