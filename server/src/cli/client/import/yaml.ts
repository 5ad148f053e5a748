import { CommandError } from "../../output.ts";

/** Maximum number of open collections and values. */
const DEPTH_MAX = 200;

/**
 * Parses one YAML document. The messages of errors have the place and not the text, which may hold secrets. Aliases are
 * refused, because a short document can stand for a huge one with them; programs that write exports use none.
 *
 * @throws {CommandError} when the text is not one document of YAML, has aliases, or is nested too deeply.
 */
export async function parseYaml(text: string, name: string): Promise<unknown> {
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
  if (error) throw new CommandError(`${name} is not YAML: see ${at(error.pos[0])}.`);
  if (others.length > 0) throw new CommandError(`${name} has several YAML documents. Give a file for each.`);
  visit(document, {
    Alias: (_, { range }) => {
      throw new CommandError(`${name} has a YAML alias at ${at(range?.[0])}. Write its value there instead.`);
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
  return document.toJS({ maxAliasCount: 0 });
}
