import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { makeDirectory, startService } from "./service.ts";

/** Refuses to start once for each file `held`, as PostgreSQL does while processes of a killed one have its memory. */
const PROGRAM = `
  const { existsSync, rmSync } = require("node:fs");
  if (existsSync("held")) {
    rmSync("held");
    process.exit(1);
  }
  console.log("ready");
  setInterval(() => {}, 1_000);
`;

it("A service that a test kills is started again, also if it refuses to start at first", async () => {
  const directory = makeDirectory("refusing", undefined);
  const service = await startService(
    () => ({
      program: process.execPath,
      args: ["-e", PROGRAM],
      directory,
      account: undefined,
      stopSignal: "SIGTERM",
    }),
    /ready/,
    (port) => `http://127.0.0.1:${port}`,
  );
  for (let i = 0; i < 2; i++) {
    writeFileSync(join(directory, "held"), "");
    await service.restart("SIGKILL");
    assert(!existsSync(join(directory, "held")));
  }
  await service.stop();
  assert(!existsSync(directory));
});
