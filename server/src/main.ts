import { run } from "./cli/program.ts";

await run(process.argv.slice(2), process.env);
