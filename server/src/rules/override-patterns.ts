import { newFingerprintKey } from "../crypto/secret.ts";

/** What holds for an identifier, or for all that match a pattern, instead of what a call asks for. */
export interface Override {
  readonly id: string;
  /** `*` stands for any run of characters, also an empty one, but not for a line feed. All else stands for itself. */
  readonly identifier: string;
  readonly limit: number;
  /** Length of the window in milliseconds. */
  readonly duration: number;
  /** Of two patterns with equally many literal characters the older one holds. */
  readonly createdAt: number;
}

/** Overrides of one namespace. */
export const OVERRIDES_MAX = 10_000;
/** Asterisks in one pattern. */
export const ASTERISKS_MAX = 8;
/** Patterns of one namespace that have more than one asterisk: those are compared one by one. */
export const MULTIPLE_MAX = 100;

/** How many asterisks a pattern has. */
export function asterisks(identifier: string): number {
  let count = 0;
  for (let at = identifier.indexOf("*"); at !== -1; at = identifier.indexOf("*", at + 1)) count++;
  return count;
}

/**
 * The overrides of one namespace in a few strings and arrays: cheap to copy from thread to thread, and ready to be
 * searched. Patterns come first, from the strongest to the weakest, so that the number of a pattern is its rank; the
 * exact ones follow.
 */
export interface CompiledOverrides {
  readonly count: number;
  readonly patterns: number;
  /** Of the polynomial hash; a secret, so that nobody can choose texts that collide. */
  readonly base: number;
  /** All identifiers in one string, and where each ends. */
  readonly texts: string;
  readonly textEnds: Uint32Array;
  readonly ids: string;
  readonly idEnds: Uint32Array;
  readonly limits: Float64Array;
  readonly durations: Float64Array;
  readonly createdAts: Float64Array;
  readonly textHashes: Int32Array;
  /** Hash table of all by their text, a pattern being found by itself too: numbers plus one, 0 where there is none. */
  readonly exactTable: Int32Array;
  /** Patterns with more than one asterisk, ascending. */
  readonly multiple: Uint32Array;
  /** Lengths of what precedes the asterisk in patterns with one, each once. */
  readonly prefixLengths: Uint32Array;
  /** A group is all patterns with the same text before their one asterisk. */
  readonly groupTable: Int32Array;
  readonly groupHashes: Int32Array;
  readonly groupPrefixLengths: Uint32Array;
  /** Lengths of what follows the asterisk in the patterns of each group, each once. */
  readonly suffixLengths: Uint32Array;
  readonly suffixLengthEnds: Uint32Array;
  /** Hash table of the patterns with one asterisk, by group and what follows the asterisk. */
  readonly singleTable: Int32Array;
  readonly groups: Int32Array;
  readonly singleSuffixLengths: Uint32Array;
  /** Of what follows the asterisk, read backwards. */
  readonly singleSuffixHashes: Int32Array;
}

/** Overrides that are compiled between two pauses, so that an event loop is not kept for long. */
const SLICE = 250;

/** Compiles, and lets the event loop go on meanwhile. */
export async function compileOverrides(overrides: readonly Override[]): Promise<CompiledOverrides> {
  const order = inOrder(overrides);
  const compiler = new Compiler(order.sorted, order.patterns);
  for (let from = 0; from < overrides.length; from += SLICE) {
    await new Promise((resolve) => setImmediate(resolve));
    compiler.add(from, Math.min(from + SLICE, overrides.length));
  }
  return compiler.finish();
}

/** Patterns from the strongest to the weakest, then the others. */
function inOrder(overrides: readonly Override[]): { sorted: Override[]; patterns: number } {
  const ranked: { override: Override; literals: number }[] = [];
  const exact: Override[] = [];
  for (const override of overrides) {
    if (override.identifier.includes("*")) ranked.push({ override, literals: literalCharacters(override.identifier) });
    else exact.push(override);
  }
  ranked.sort((a, b) => b.literals - a.literals || compareAge(a.override, b.override));
  return { sorted: [...ranked.map(({ override }) => override), ...exact], patterns: ranked.length };
}

class Compiler {
  readonly #sorted: readonly Override[];
  readonly #base = newBase();
  readonly #textEnds: Uint32Array;
  readonly #idEnds: Uint32Array;
  readonly #limits: Float64Array;
  readonly #durations: Float64Array;
  readonly #createdAts: Float64Array;
  readonly #textHashes: Int32Array;
  readonly #exactTable: Int32Array;
  readonly #multiple: number[] = [];
  readonly #groupTable: Int32Array;
  readonly #groupHashes: number[] = [];
  readonly #groupPrefixes: string[] = [];
  readonly #groupSuffixLengths: Set<number>[] = [];
  readonly #singleTable: Int32Array;
  readonly #groups: Int32Array;
  readonly #singleSuffixLengths: Uint32Array;
  readonly #singleSuffixHashes: Int32Array;
  #textEnd = 0;
  #idEnd = 0;

  constructor(sorted: readonly Override[], patterns: number) {
    const count = sorted.length;
    this.#sorted = sorted;
    this.#textEnds = new Uint32Array(count);
    this.#idEnds = new Uint32Array(count);
    this.#limits = new Float64Array(count);
    this.#durations = new Float64Array(count);
    this.#createdAts = new Float64Array(count);
    this.#textHashes = new Int32Array(count);
    this.#exactTable = newTable(count);
    this.#groupTable = newTable(patterns);
    this.#singleTable = newTable(patterns);
    this.#groups = new Int32Array(patterns);
    this.#singleSuffixLengths = new Uint32Array(patterns);
    this.#singleSuffixHashes = new Int32Array(patterns);
  }

  add(from: number, to: number): void {
    for (let number = from; number < to; number++) this.#add(number);
  }

  #add(number: number): void {
    const { id, identifier, limit, duration, createdAt } = this.#sorted[number]!;
    this.#textEnds[number] = this.#textEnd += identifier.length;
    this.#idEnds[number] = this.#idEnd += id.length;
    this.#limits[number] = limit;
    this.#durations[number] = duration;
    this.#createdAts[number] = createdAt;
    const asterisk = identifier.indexOf("*");
    const prefixHash = asterisk === -1 ? 0 : hash(identifier, 0, asterisk, 0, this.#base);
    const textHash = hash(identifier, Math.max(0, asterisk), identifier.length, prefixHash, this.#base);
    this.#textHashes[number] = textHash;
    insert(this.#exactTable, textHash, number);
    if (asterisk === -1) return;
    if (identifier.includes("*", asterisk + 1)) this.#multiple.push(number);
    else this.#addSingle(number, identifier.slice(0, asterisk), prefixHash, identifier.slice(asterisk + 1));
  }

  #addSingle(number: number, prefix: string, prefixHash: number, suffix: string): void {
    let group = lookUp(this.#groupTable, prefixHash, (other) => this.#groupPrefixes[other] === prefix);
    if (group === NONE) {
      group = this.#groupPrefixes.push(prefix) - 1;
      this.#groupHashes.push(prefixHash);
      this.#groupSuffixLengths.push(new Set());
      insert(this.#groupTable, prefixHash, group);
    }
    const suffixHash = hashBackwards(suffix, this.#base);
    this.#groups[number] = group;
    this.#singleSuffixLengths[number] = suffix.length;
    this.#singleSuffixHashes[number] = suffixHash;
    this.#groupSuffixLengths[group]!.add(suffix.length);
    insert(this.#singleTable, singleHash(group, suffix.length, suffixHash), number);
  }

  finish(): CompiledOverrides {
    let suffixLengthEnd = 0;
    return {
      count: this.#sorted.length,
      patterns: this.#groups.length,
      base: this.#base,
      texts: this.#sorted.map(({ identifier }) => identifier).join(""),
      textEnds: this.#textEnds,
      ids: this.#sorted.map(({ id }) => id).join(""),
      idEnds: this.#idEnds,
      limits: this.#limits,
      durations: this.#durations,
      createdAts: this.#createdAts,
      textHashes: this.#textHashes,
      exactTable: this.#exactTable,
      multiple: Uint32Array.from(this.#multiple),
      prefixLengths: Uint32Array.from(new Set(this.#groupPrefixes.map(({ length }) => length))).sort(),
      groupTable: this.#groupTable,
      groupHashes: Int32Array.from(this.#groupHashes),
      groupPrefixLengths: Uint32Array.from(this.#groupPrefixes, ({ length }) => length),
      suffixLengths: Uint32Array.from(this.#groupSuffixLengths.flatMap((lengths) => [...lengths])),
      suffixLengthEnds: Uint32Array.from(this.#groupSuffixLengths, ({ size }) => (suffixLengthEnd += size)),
      singleTable: this.#singleTable,
      groups: this.#groups,
      singleSuffixLengths: this.#singleSuffixLengths,
      singleSuffixHashes: this.#singleSuffixHashes,
    };
  }
}

/** Memory of the compiled overrides, estimated; with what searching adds to it. */
export function compiledBytes(compiled: CompiledOverrides): number {
  let bytes = 2 * (compiled.texts.length + compiled.ids.length) + 100 * compiled.count;
  for (const value of Object.values(compiled)) if (ArrayBuffer.isView(value)) bytes += value.byteLength;
  return bytes;
}

/** A pattern with more than one asterisk, taken apart. */
interface Pieces {
  readonly prefix: string;
  readonly middle: readonly string[];
  readonly suffix: string;
}

/** Hashes of the first, and of the last, so many characters of the identifier that is looked for. */
let prefixHashes = new Float64Array(1_025);
let suffixHashes = new Float64Array(1_025);

/**
 * The overrides of one namespace, searched in bounded time.
 *
 * Exact ones are in a hash table. Patterns with one asterisk are in a hash table by what precedes and what follows it:
 * for each length of a prefix that occurs among them the hash of the identifier's prefix tells whether there are such
 * patterns, and for each length of a suffix among those one look-up tells whether one matches. That takes at most one
 * look-up for each such pattern, however they are chosen, and mostly one for each length. The few with more asterisks
 * are compared one by one, from the strongest on, in linear time each.
 */
export class Overrides {
  readonly #compiled: CompiledOverrides;
  /** Made when they are first found. */
  readonly #found: (Override | undefined)[] = [];
  readonly #multiple: readonly Pieces[];

  constructor(compiled: CompiledOverrides) {
    this.#compiled = compiled;
    this.#multiple = Array.from(compiled.multiple, (number) => piecesOf(this.#text(number)));
  }

  get size(): number {
    return this.#compiled.count;
  }

  /** What holds for an identifier: what was set for exactly this text, else the strongest pattern that matches. */
  find(identifier: string): Override | undefined {
    const { count, patterns } = this.#compiled;
    if (count === 0) return undefined;
    const exact = this.#findExact(identifier);
    if (exact !== NONE) return this.#override(exact);
    if (patterns === 0) return undefined;
    const lineFeed = identifier.indexOf("\n");
    let best = this.#findSingle(identifier, lineFeed, false);
    // Hashes can agree by chance. Then all that agree are compared, not the strongest alone.
    if (best !== NONE && !this.#matches(best, identifier)) best = this.#findSingle(identifier, lineFeed, true);
    best = this.#findMultiple(identifier, lineFeed, best);
    return best === NONE ? undefined : this.#override(best);
  }

  /** Leaves the hashes of the identifier's prefixes behind. */
  #findExact(identifier: string): number {
    const { base, exactTable, textHashes } = this.#compiled;
    const { length } = identifier;
    if (prefixHashes.length <= length) {
      prefixHashes = new Float64Array(length + 1);
      suffixHashes = new Float64Array(length + 1);
    }
    let hashed = 0;
    for (let i = 0; i < length; i++) {
      hashed = extend(hashed, identifier.charCodeAt(i), base);
      prefixHashes[i + 1] = hashed;
    }
    return lookUp(exactTable, hashed, (number) => textHashes[number] === hashed && this.#text(number) === identifier);
  }

  /** The strongest pattern with one asterisk that matches, as far as the hashes tell or, where `compares`, truly. */
  #findSingle(identifier: string, lineFeed: number, compares: boolean): number {
    const { base, prefixLengths, groupTable, groupHashes, groupPrefixLengths } = this.#compiled;
    const { suffixLengths, suffixLengthEnds, singleTable, groups, singleSuffixLengths, singleSuffixHashes } =
      this.#compiled;
    if (prefixLengths.length === 0) return NONE;
    const { length } = identifier;
    let hashed = 0;
    for (let i = 1; i <= length; i++) {
      hashed = extend(hashed, identifier.charCodeAt(length - i), base);
      suffixHashes[i] = hashed;
    }
    let best = NONE;
    for (let p = 0; p < prefixLengths.length; p++) {
      const prefixLength = prefixLengths[p]!;
      if (prefixLength > length) break;
      const prefixHash = prefixHashes[prefixLength]!;
      const groupMask = groupTable.length - 1;
      let group = NONE;
      for (let at = mix(prefixHash) & groupMask; groupTable[at] !== 0; at = (at + 1) & groupMask) {
        const other = groupTable[at]! - 1;
        if (groupHashes[other] === prefixHash && groupPrefixLengths[other] === prefixLength) {
          group = other;
          break;
        }
      }
      if (group === NONE) continue;
      // The asterisk stands for no line feed, so the suffix has to begin before the next one ends.
      const feed = lineFeed === -1 ? -1 : identifier.indexOf("\n", prefixLength);
      const suffixLengthMin = feed === -1 ? 0 : length - feed;
      const suffixLengthMax = length - prefixLength;
      const singleMask = singleTable.length - 1;
      for (let s = group === 0 ? 0 : suffixLengthEnds[group - 1]!; s < suffixLengthEnds[group]!; s++) {
        const suffixLength = suffixLengths[s]!;
        if (suffixLength < suffixLengthMin || suffixLength > suffixLengthMax) continue;
        const suffixHash = suffixLength === 0 ? 0 : suffixHashes[suffixLength]!;
        let at = mix(singleHash(group, suffixLength, suffixHash)) & singleMask;
        for (; singleTable[at] !== 0; at = (at + 1) & singleMask) {
          const number = singleTable[at]! - 1;
          if (
            (best === NONE || number < best) &&
            singleSuffixHashes[number] === suffixHash &&
            groups[number] === group &&
            singleSuffixLengths[number] === suffixLength &&
            (!compares || this.#matches(number, identifier))
          ) {
            best = number;
          }
        }
      }
    }
    return best;
  }

  /** The strongest pattern with several asterisks that matches, or `best` where none is stronger than that. */
  #findMultiple(identifier: string, lineFeed: number, best: number): number {
    const { multiple } = this.#compiled;
    for (let i = 0; i < multiple.length; i++) {
      const number = multiple[i]!;
      if (best !== NONE && number >= best) break;
      if (matchesPieces(this.#multiple[i]!, identifier, lineFeed)) return number;
    }
    return best;
  }

  #matches(number: number, identifier: string): boolean {
    return matchesPattern(this.#text(number), identifier);
  }

  #text(number: number): string {
    const { texts, textEnds } = this.#compiled;
    return texts.slice(number === 0 ? 0 : textEnds[number - 1], textEnds[number]);
  }

  #override(number: number): Override {
    const found = this.#found[number];
    if (found !== undefined) return found;
    const { ids, idEnds, limits, durations, createdAts } = this.#compiled;
    const override = {
      id: ids.slice(number === 0 ? 0 : idEnds[number - 1], idEnds[number]),
      identifier: this.#text(number),
      limit: limits[number]!,
      duration: durations[number]!,
      createdAt: createdAts[number]!,
    };
    this.#found[number] = override;
    return override;
  }
}

/** Whether the whole text matches the pattern. */
export function matchesPattern(pattern: string, text: string): boolean {
  return pattern.includes("*") ? matchesPieces(piecesOf(pattern), text, text.indexOf("\n")) : pattern === text;
}

function piecesOf(pattern: string): Pieces {
  const pieces = pattern.split("*");
  return { prefix: pieces[0]!, middle: pieces.slice(1, -1).filter((piece) => piece !== ""), suffix: pieces.at(-1)! };
}

/**
 * Each piece is looked for behind the one before, and taken where it first occurs: a later place would only leave more
 * to the asterisk before it and less to those behind. So every character of the text is passed once.
 *
 * @param lineFeed where the first one is in the text, or -1.
 */
function matchesPieces({ prefix, middle, suffix }: Pieces, text: string, lineFeed: number): boolean {
  const end = text.length - suffix.length;
  let at = prefix.length;
  if (at > end || !text.startsWith(prefix) || !text.endsWith(suffix)) return false;
  for (const piece of middle) {
    const found = text.indexOf(piece, at);
    if (found === -1 || found + piece.length > end) return false;
    if (lineFeed !== -1 && hasLineFeed(text, at, found)) return false;
    at = found + piece.length;
  }
  return lineFeed === -1 || !hasLineFeed(text, at, end);
}

function hasLineFeed(text: string, from: number, to: number): boolean {
  const found = text.indexOf("\n", from);
  return found !== -1 && found < to;
}

/** How many characters of a pattern stand for themselves, in code points. */
function literalCharacters(pattern: string): number {
  let count = pattern.length - asterisks(pattern);
  for (let i = 1; i < pattern.length; i++)
    if (isLow(pattern.charCodeAt(i)) && isHigh(pattern.charCodeAt(i - 1))) count--;
  return count;
}

function isHigh(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800;
}

function isLow(unit: number): boolean {
  return (unit & 0xfc00) === 0xdc00;
}

function compareAge(a: Override, b: Override): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

const NONE = -1;
/** A prime, so that the hash is a polynomial over a field: two texts collide for few bases only. */
const PRIME = 2 ** 31 - 1;

/** From 2^20 to 2^21: large, and its products with what is less than the prime are exact. */
function newBase(): number {
  return 2 ** 20 + (newFingerprintKey()[0] >>> 12);
}

/** The hash of a text that has one more code unit. */
function extend(hashed: number, unit: number, base: number): number {
  const product = hashed * base + unit + 1;
  // Less than 2^22, so that cutting off its fraction is the same as rounding it down, and faster.
  const high = (product * 2 ** -31) | 0;
  const sum = product - high * 2 ** 31 + high;
  return sum >= PRIME ? sum - PRIME : sum;
}

/** Of a part of a text, behind what has the hash `before`. */
function hash(text: string, from: number, to: number, before: number, base: number): number {
  let hashed = before;
  for (let i = from; i < to; i++) hashed = extend(hashed, text.charCodeAt(i), base);
  return hashed;
}

/** Of a text read from its end. */
function hashBackwards(text: string, base: number): number {
  let hashed = 0;
  for (let i = text.length - 1; i >= 0; i--) hashed = extend(hashed, text.charCodeAt(i), base);
  return hashed;
}

function mix(hashed: number): number {
  const mixed = Math.imul(hashed, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

function singleHash(group: number, suffixLength: number, suffixHash: number): number {
  return suffixHash ^ Math.imul(group + 1, 0x85ebca6b) ^ Math.imul(suffixLength, 0xc2b2ae35);
}

function newTable(entries: number): Int32Array {
  let capacity = 4;
  while (capacity < 2 * entries) capacity *= 2;
  return new Int32Array(capacity);
}

function insert(table: Int32Array, hashed: number, number: number): void {
  const mask = table.length - 1;
  let at = mix(hashed) & mask;
  while (table[at] !== 0) at = (at + 1) & mask;
  table[at] = number + 1;
}

function lookUp(table: Int32Array, hashed: number, isIt: (number: number) => boolean): number {
  const mask = table.length - 1;
  for (let at = mix(hashed) & mask; table[at] !== 0; at = (at + 1) & mask) {
    if (isIt(table[at]! - 1)) return table[at]! - 1;
  }
  return NONE;
}
