import { createReadStream } from "node:fs";
import { decode } from "./decode.ts";
import { CommandError } from "./output.ts";

/**
 * The text that an argument names: `-` is the standard input, `@FILE` a file, any other text itself.
 *
 * @throws {CommandError} when it cannot be read, or has more than `bytesMax` bytes.
 */
export async function readInput(argument: string, bytesMax: number): Promise<string> {
  if (argument === "-") return readStream(process.stdin, bytesMax, "The standard input");
  return argument.startsWith("@") ? readFile(argument.slice(1), bytesMax) : argument;
}

/** The text of a file. `-` is the standard input. */
export async function readFile(path: string, bytesMax: number): Promise<string> {
  if (path === "-") return readStream(process.stdin, bytesMax, "The standard input");
  try {
    return await readStream(createReadStream(path), bytesMax, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new CommandError(`${path} cannot be read (${code}).`, { cause: error });
  }
}

/**
 * Parses JSON, by `parse`. The message of the error, an `ErrorClass`, has the place and not the text, which may hold secrets.
 */
export function parseJson(
  text: string,
  name: string,
  {
    ErrorClass = CommandError,
    parse = JSON.parse,
  }: { ErrorClass?: typeof CommandError; parse?(text: string): unknown } = {},
): unknown {
  try {
    return parse(text);
  } catch (error) {
    const place = /at position \d+( \(line \d+ column \d+\))?/.exec((error as Error).message)?.[0];
    throw new ErrorClass(`${name} is not JSON${place === undefined ? "" : `: see ${place.replace("at ", "")}`}.`);
  }
}

async function readStream(stream: AsyncIterable<Uint8Array>, bytesMax: number, name: string): Promise<string> {
  let bytes = 0;
  async function* bounded() {
    for await (const chunk of stream) {
      bytes += chunk.byteLength;
      if (bytes > bytesMax) throw new CommandError(`${name} is longer than ${bytesMax / 2 ** 20} MiB.`);
      yield chunk;
    }
  }
  const texts: string[] = [];
  for await (const text of decode(bounded(), name)) texts.push(text);
  return texts.join("");
}
