import { globSync } from "node:fs";
import { installPackage } from "./service.ts";

const LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1";

/**
 * Variables with which a program has another wall clock; its monotonic clock is the true one. `shift`: such as
 * `{ FAKETIME: "-300" }` for seconds, or a file that is read again for each look at the clock. Undefined if libfaketime is
 * not on this machine, and cannot be or must not be installed.
 */
export function fakeClock(shift: Record<string, string>, installs: boolean): Record<string, string> | undefined {
  if (process.platform !== "linux") return undefined;
  if (installs && globSync(LIBRARY).length === 0) installPackage("libfaketime");
  const [library] = globSync(LIBRARY);
  if (library === undefined) return undefined;
  return {
    ...shift,
    LD_PRELOAD: library,
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    DONT_FAKE_MONOTONIC: "1",
    NO_FAKE_STAT: "1",
  };
}
