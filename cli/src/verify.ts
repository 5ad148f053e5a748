import type { Command } from "commander";
import { systemClock } from "../../engine/src/clock/system.ts";
import { bodyOf } from "./body.ts";
import { decisionLine } from "./colours.ts";
import { connect } from "./connection.ts";
import { declaredCommand } from "./declared.ts";
import { explain, type VerificationInput } from "./explain.ts";
import { readInput } from "./input.ts";
import {
  addConnectionOptions,
  addFlags,
  addOutputOptions,
  type CommandFlags,
  callDeclared,
  formatOf,
  givenFlags,
} from "./operation-commands.ts";
import { CommandError } from "./output.ts";
import { printData } from "./render.ts";

const KEY_BYTES_MAX = 64 * 1024;

/** Adds `verify`. */
export function addVerify(program: Command, environment: NodeJS.ProcessEnv): void {
  const declared = declaredCommand("keys.verifyKey");
  const flags = declared.flags.filter(({ path }) => path !== "key");
  const verify = program
    .command("verify <key>")
    .description("verify a key and explain the decision; - reads the key from the standard input")
    .helpGroup("Commands that call a service:")
    .exitOverride()
    .addHelpText(
      "after",
      "\nThe verification is a real one: it is charged to limits and credits. The exit code is 0 if the key is valid, else 1.\n\n" +
        "Example:\n  latchkey verify prod_9gCpgu7HGPWDQ6HnGpSo1X4TcK1b --permissions documents.read",
    );
  addFlags(verify, flags);
  addOutputOptions(addConnectionOptions(verify));
  verify.action(async (given: string) => {
    const options = verify.opts<CommandFlags>();
    const key = given === "-" ? (await readInput("-", KEY_BYTES_MAX)).trim() : given;
    const body = bodyOf(flags, givenFlags(verify, flags), systemClock.now(), { key }) as VerificationInput;
    const endpoint = await connect(options, environment, false);
    const { data } = await callDeclared(declared, endpoint, JSON.stringify(body), options);
    if (typeof data?.valid !== "boolean" || typeof data.code !== "string") {
      throw new CommandError("The service answered without a decision. Is its version newer?");
    }
    const format = formatOf(options);
    if (format === "table") {
      const [decision = "", ...lines] = explain(data, body, systemClock.now());
      console.log([decisionLine(decision, data.valid), ...lines].join("\n"));
    } else await printData(data, format);
    if (!data.valid) process.exitCode = 1;
  });
}
