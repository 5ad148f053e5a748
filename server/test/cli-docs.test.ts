/** The command lines in docs/cli.md. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { Command } from "commander";
import { addClientCommands, expandMembers } from "../../cli/src/commands.ts";
import { addOperatorCommands } from "../src/cli/operator/commands.ts";
import { codeBlocks } from "./code-blocks.ts";
import { installCommands } from "./guide.ts";
import { makeFolder, ROOT_KEY, start } from "./process.ts";

const guide = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
const blocks = codeBlocks(guide)
  .filter(({ language }) => language === "sh")
  .map(({ code }) => code.replaceAll("\\\n", " "));

describe("docs/cli.md", () => {
  it("has first steps that work as written", async (t) => {
    const directory = makeFolder(t);
    const server = await start({ directory });
    writeFileSync(join(directory, "data", "root-key"), ROOT_KEY);
    const script = blocks
      .find((code) => code.startsWith("latchkey login"))!
      .replaceAll("http://127.0.0.1:3000", server.address);
    const env = { PATH: `${installCommands(directory)}:${process.env.PATH}`, HOME: directory };
    const { stdout } = await promisify(execFile)("sh", ["-ec", script], { cwd: directory, env });
    assert.match(stdout, /^Logged in to .*\nVALID: every check passed\..*\n {2}Key key_\w+ of the API api_\w+\n/);
  });

  it("names commands and flags that exist", () => {
    const program = new Command("latchkey");
    addOperatorCommands(program, {});
    addClientCommands(program, { environment: {}, loadRules: () => assert.fail("no command runs") });
    const lines = blocks
      .flatMap((block) => block.split("\n"))
      .flatMap((line) => /^latchkey (.*)$/.exec(line)?.[1] ?? []);
    assert(lines.length > 15);
    for (const line of lines) {
      const args = expandMembers(line.split(" > ")[0]!.match(/'[^']*'|\S+/g)!);
      let command = program;
      for (const arg of args) {
        const child = command.commands.find((one) => one.name() === arg);
        if (child) command = child;
        else if (arg.startsWith("-")) {
          assert(
            command.options.some(({ long, short }) => arg === long || arg === short),
            `${line}: there is no flag ${arg}`,
          );
        }
      }
      assert.notEqual(command, program, line);
    }
  });
});
