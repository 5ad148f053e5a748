// The script of the element `<latchkey-keys>`, as one minified module.
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const source = fileURLToPath(new URL("../../sdk/src/element.ts", import.meta.url));
const texts = fileURLToPath(new URL("../../sdk/src/portal/texts.ts", import.meta.url));
const start = "\0latchkey-keys";

/** The module defines the element for the service that it was loaded from: its path is `portal/latchkey-keys.js`. */
const startCode = `import { defineLatchkeyKeys } from ${JSON.stringify(source)};
defineLatchkeyKeys(new URL("..", import.meta.url).href);
export * from ${JSON.stringify(source)};
export { Language } from ${JSON.stringify(texts)};`;

/** Returns the text of the module. */
export async function buildElement() {
  const bundler = await rolldown({
    input: start,
    platform: "browser",
    plugins: [
      {
        name: "latchkey-keys",
        resolveId: (id) => (id === start ? id : null),
        load: (id) => (id === start ? startCode : null),
      },
    ],
    onLog(_, log) {
      throw new Error(`The bundler reports: ${log.message ?? log}`);
    },
  });
  try {
    const { output } = await bundler.generate({ format: "esm", minify: true });
    return output[0].code;
  } finally {
    await bundler.close();
  }
}
