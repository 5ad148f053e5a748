/** A fenced block of code in a Markdown text. */
export interface CodeBlock {
  /** The first word after the fence, such as `ts`; empty without one. */
  language: string;
  /** The word after the language, such as the name of a file; empty without one. */
  name: string;
  code: string;
  /** The line of the text at which the code begins, from 1. */
  line: number;
  /** The heading above it, without `#`; empty without one. */
  heading: string;
}

/**
 * Every block of code in a Markdown text, in order. Code of a block that is indented, as in a list, is returned without the
 * indentation.
 *
 * @throws {Error} if a block has no end.
 */
export function codeBlocks(text: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let heading = "";
  let open: { block: CodeBlock; indentation: number; end: RegExp } | undefined;
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (open) {
      const { block, indentation, end } = open;
      if (end.test(line)) open = undefined;
      else block.code += `${line.slice(Math.min(indentation, line.search(/\S|$/)))}\n`;
      continue;
    }
    const [, title] = /^#{1,6} +(.*?)[ #]*$/.exec(line) ?? [];
    if (title !== undefined) heading = title;
    const [, spaces, fence, language, name] = /^( *)(`{3,}|~{3,}) *([^\s`]*) *([^\s`]*)[^`]*$/.exec(line) ?? [];
    if (spaces === undefined) continue;
    const block = { language: language!, name: name!, code: "", line: i + 2, heading };
    blocks.push(block);
    open = { block, indentation: spaces.length, end: new RegExp(`^ *${fence![0]}{${fence!.length},} *$`) };
  }
  if (open) throw new Error(`The block of code at line ${open.block.line} has no end.`);
  return blocks;
}
