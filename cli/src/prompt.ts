import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { CommandError } from "./output.ts";

/** Asks for a text on the terminal, which does not show it. */
export async function askSecret(question: string): Promise<string> {
  process.stderr.write(question);
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
  const answer = await ask("", nothing);
  process.stderr.write("\n");
  return answer;
}

/** Asks a question on the terminal. Only `yes` and `y` are yes. */
export async function confirm(question: string): Promise<boolean> {
  return /^y(es)?$/i.test((await ask(`${question} [y/N] `, process.stderr)).trim());
}

/** @throws {CommandError} when the input ends without an answer, or Ctrl-C is typed. */
async function ask(question: string, output: NodeJS.WritableStream): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output, terminal: true });
  const interruption = new AbortController();
  terminal.once("close", () => interruption.abort());
  terminal.once("SIGINT", () => interruption.abort());
  try {
    return await terminal.question(question, { signal: interruption.signal });
  } catch {
    throw new CommandError("Stopped without an answer.");
  } finally {
    terminal.close();
  }
}
