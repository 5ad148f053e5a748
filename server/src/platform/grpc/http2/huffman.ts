/** The Huffman code of header fields (RFC 7541, appendix B). */

/** Bits of the code of each byte, and of the end of a text. Codes of one length are in the order of their symbols. */
export const codeLengths: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6,
  5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
  23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26,
  20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27,
  27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
  27, 27, 27, 26, 30,
];
const END = 256;

/** Padding has fewer bits than a byte, and all of them are 1. */
const PADDING_BITS_MAX = 7;

const NODES_MAX = 256;
const NIBBLES = 16;
const NONE = -1;
const INVALID = -2;

/** By node of the tree of codes and the next four bits: the next node, and the byte that was complete meanwhile. */
const nextNode = new Int16Array(NODES_MAX * NIBBLES);
const emitted = new Int16Array(NODES_MAX * NIBBLES);
/** Nodes at which a text may end. */
const isEnd = new Uint8Array(NODES_MAX);

buildTables();

/** The text between two places as Latin-1; undefined: it is not in this code. */
export function decodeHuffman(bytes: Buffer, from: number, to: number): string | undefined {
  // The shortest code has five bits.
  const decoded = Buffer.allocUnsafe(Math.floor(((to - from) * 8) / 5));
  let size = 0;
  let node = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes.readUInt8(at);
    for (const nibble of [byte >> 4, byte & 15]) {
      const step = node * NIBBLES + nibble;
      const symbol = emitted[step] ?? INVALID;
      if (symbol === INVALID) return undefined;
      if (symbol !== NONE) decoded[size++] = symbol;
      node = nextNode[step] ?? 0;
    }
  }
  return isEnd[node] === 1 ? decoded.toString("latin1", 0, size) : undefined;
}

/** The children of a node by a bit: another node, or a symbol as `~symbol`. */
type Tree = (readonly [number, number])[];

function buildTables(): void {
  const tree = buildTree();
  for (let node = 0; node < tree.length; node++) {
    for (let nibble = 0; nibble < NIBBLES; nibble++) {
      let at = node;
      let symbol = NONE;
      for (let bit = 3; bit >= 0; bit--) {
        const child = tree[at]?.[((nibble >> bit) & 1) as 0 | 1] ?? 0;
        if (child >= 0) at = child;
        else {
          symbol = ~child === END ? INVALID : ~child;
          at = 0;
          if (symbol === INVALID) break;
        }
      }
      nextNode[node * NIBBLES + nibble] = at;
      emitted[node * NIBBLES + nibble] = symbol;
    }
  }
  for (let bits = 0, node = 0; bits <= PADDING_BITS_MAX; bits++) {
    isEnd[node] = 1;
    node = tree[node]?.[1] ?? 0;
  }
}

function buildTree(): Tree {
  const tree: [number, number][] = [[0, 0]];
  const symbols = codeLengths.map((length, symbol) => ({ length, symbol }));
  symbols.sort((a, b) => a.length - b.length || a.symbol - b.symbol);
  let code = 0;
  let bits = 0;
  for (const { length, symbol } of symbols) {
    code <<= length - bits;
    bits = length;
    let node = 0;
    for (let bit = length - 1; bit > 0; bit--) {
      const children = tree[node] ?? [0, 0];
      const side = ((code >> bit) & 1) as 0 | 1;
      if (children[side] === 0) {
        children[side] = tree.length;
        tree.push([0, 0]);
      }
      node = children[side];
    }
    const leaf = tree[node];
    if (leaf !== undefined) leaf[(code & 1) as 0 | 1] = ~symbol;
    code++;
  }
  return tree;
}
