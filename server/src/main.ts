import { run } from "./cli/program.ts";
import { processEnvironment } from "./platform/config/env.ts";

await run(process.argv.slice(2), processEnvironment);
