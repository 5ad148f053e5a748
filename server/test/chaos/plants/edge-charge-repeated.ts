/** Preloaded into an edge: it repeats a charge whose answer was lost. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/replica/charges.ts", {
  "const { results } = await this.#home.charge({ calls, ...(position !== undefined && { position }) });":
    "const ask = () => this.#home.charge({ calls, ...(position !== undefined && { position }) }); const { results } = await ask().catch(ask);",
});
