import type { Document } from "yaml";
import { isPreserved } from "../../engine/src/rules/json-text.ts";
import { CommandError } from "./output.ts";
import { escapeLines } from "./printable.ts";

/** Maximum number of open collections and values. */
const DEPTH_MAX = 200;

/** How the documents of a command are read. */
export interface YamlOptions {
  /** What a number becomes that no double holds exactly: its text, or an error. */
  readonly longNumbers: "text" | "error";
  /** Uses of one anchor, with those in its value: a short document can stand for a huge one with them. */
  readonly aliasesMax: number;
  /** Whether messages may say what is wrong with the text. Those about secrets have the place only. */
  readonly isPublic: boolean;
}

/** A document with the places of what it holds. */
export interface PlacedYaml {
  readonly document: Document.Parsed;
  /** The line of an offset. */
  lineAt(offset: number): number;
}

/**
 * Parses one YAML document.
 *
 * @throws {CommandError} as `parsePlacedYaml` does.
 */
export async function parseYaml(text: string, name: string, options: YamlOptions): Promise<unknown> {
  const parsed = await parsePlacedYaml(text, name, options);
  try {
    return parsed?.document.toJS({ maxAliasCount: options.aliasesMax });
  } catch (cause) {
    throw new CommandError(`${name} cannot be read: ${(cause as Error).message}.`);
  }
}

/**
 * Parses one YAML document, and keeps the places of what it holds; undefined: the text has none.
 *
 * @throws {CommandError} when the text is not one document of YAML, has too many aliases, has a name twice in one map, or
 * is nested too deeply.
 */
export async function parsePlacedYaml(
  text: string,
  name: string,
  { aliasesMax, isPublic, longNumbers }: YamlOptions,
): Promise<PlacedYaml | undefined> {
  const { Composer, isScalar, Lexer, LineCounter, Parser, visit } = await import("yaml");
  const lineCounter = new LineCounter();
  lineCounter.addNewLine(0);
  const at = (offset: number | undefined) => `line ${lineCounter.linePos(offset ?? 0).line}`;
  const parser = new Parser(lineCounter.addNewLine);
  function* parse() {
    for (const lexeme of new Lexer().lex(text)) {
      yield* parser.next(lexeme);
      if (parser.stack.length > DEPTH_MAX)
        throw new CommandError(`${name} is nested too deeply at ${at(parser.offset)}.`);
    }
    yield* parser.end();
  }
  // The composer would compare every key of a map with every other.
  const composer = new Composer({ uniqueKeys: false, logLevel: "silent" });
  const [document, ...others] = composer.compose(parse());
  if (document === undefined) return undefined;
  const [error] = document.errors;
  if (error && isPublic) {
    const details = document.errors.slice(0, 10).map(({ message, pos }) => `${message} at ${at(pos[0])}`);
    throw new CommandError(`${name} is not YAML.`, { details });
  }
  if (error) throw new CommandError(`${name} is not YAML: see ${at(error.pos[0])}.`);
  if (others.length > 0) throw new CommandError(`${name} has several YAML documents. Give a file for each.`);
  visit(document, {
    Alias: (_, { range }) => {
      if (aliasesMax > 0) return;
      throw new CommandError(`${name} has a YAML alias at ${at(range?.[0])}. Write its value there instead.`);
    },
    Scalar: (_, scalar) => {
      const { value, source, range } = scalar;
      if (typeof value !== "number" || source === undefined || isExact(value, source)) return;
      if (longNumbers === "text") scalar.value = source;
      else throw new CommandError(`${name} has a number at ${at(range?.[0])} that cannot be kept exactly. Quote it.`);
    },
    Map: (_, { items }) => {
      const keys = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) throw new CommandError(`${name} has a name twice at ${at(key.range?.[0])}.`);
        keys.add(key.value);
      }
    },
  });
  return { document: document as Document.Parsed, lineAt: (offset) => lineCounter.linePos(offset).line };
}

/** Whether a number is the one that its text names. Of those that are not decimal, only the integers are known to be. */
function isExact(value: number, source: string): boolean {
  return DECIMAL.test(source) ? isPreserved(source.replace("+", "")) : Number.isSafeInteger(value);
}

const DECIMAL = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;

/** YAML for a terminal or a program. */
export async function yamlText(value: unknown): Promise<string> {
  const { stringify } = await import("yaml");
  const options = { lineWidth: 0, aliasDuplicateObjects: false };
  const text = stringify(value, options);
  if (escapeLines(text) === text) return text;
  // Escapes exist in double quotes only.
  const quoted = { ...options, defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "QUOTE_DOUBLE" } as const;
  return escapeLines(stringify(value, quoted));
}
