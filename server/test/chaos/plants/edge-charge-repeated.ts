/** Preloaded into an edge: it repeats a charge whose answer was lost. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/replica/charges.ts", {
  "const answer = await this.#home.charge({":
    "const home = this.#home; const charge = (question) => home.charge(question).catch(() => home.charge(question)); const answer = await charge({",
});
