import { existsSync, readFileSync } from "node:fs";

/** The build of the program writes the module beside it. */
const built = new URL("./latchkey-keys.mjs", import.meta.url);
/** A program that runs from its sources makes the module itself. */
const builder = new URL("../../../build/element.js", import.meta.url);

/** The module that defines the element `<latchkey-keys>`. */
export async function elementScript(): Promise<Buffer> {
  if (existsSync(built)) return readFileSync(built);
  const { buildElement } = await import(builder.href);
  return Buffer.from(await buildElement());
}
