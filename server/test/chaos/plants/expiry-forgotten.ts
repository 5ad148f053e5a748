/** Preloaded into a node: of a hundred holds, which their ids choose, one does not expire, however often it is tried. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/credits/held-credits.ts", {
  'const isDue = before.state === "open" &&':
    'const isDue = !(action.kind === "expire" && (holdId.charCodeAt(8) * 31 + holdId.charCodeAt(9)) % 100 === 7) && before.state === "open" &&',
});
