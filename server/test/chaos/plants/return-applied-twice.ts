/** Preloaded into a node: the script of Redis gives back twice what it is told to give back. */
import { patchModule } from "./patch-module.ts";

patchModule("server/src/platform/redis/charge-script.ts", {
  "local amount = consumed - tonumber(ARGV[i - 1])": "local amount = 2 * (consumed - tonumber(ARGV[i - 1]))",
});
