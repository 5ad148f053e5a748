import { newFingerprintKey } from "../crypto/secret.ts";
import type { LimitMode } from "./strict-window.ts";

/** A limit for an identifier, or for all identifiers that match a pattern. It replaces the limit of the call. */
export interface Override {
  readonly id: string;
  /** `*` matches any characters except a line feed, including none. Other characters match themselves. */
  readonly identifier: string;
  readonly limit: number;
  /** Length of the window in milliseconds. */
  readonly duration: number;
  /** The mode of the limit. Null: that of the call. */
  readonly mode: LimitMode | null;
  /** Whether it is counted and never denies. Null: as the call says. */
  readonly shadow: boolean | null;
  /** Of two patterns with the same number of literal characters, the older one applies. */
  readonly createdAt: number;
}

const modes: readonly (LimitMode | null)[] = [null, "standard", "strict"];
const shadows: readonly (boolean | null)[] = [null, false, true];
/** How limits act, in the order of their numbers. */
const kinds = shadows.flatMap((shadow) => modes.map((mode) => ({ mode, shadow })));

/** Largest number of overrides per namespace. */
export const OVERRIDES_MAX = 10_000;
/** Largest number of asterisks per pattern. */
export const ASTERISKS_MAX = 8;
/** Largest number of patterns with more than one asterisk per namespace. They are compared one by one. */
export const MULTIPLE_MAX = 100;

/** The number of asterisks in a pattern. */
export function asterisks(identifier: string): number {
  let count = 0;
  for (let at = identifier.indexOf("*"); at !== -1; at = identifier.indexOf("*", at + 1)) count++;
  return count;
}

/**
 * The overrides of one namespace, compiled for searching, in a few strings and arrays that are cheap to copy between
 * threads. Patterns come first, in order of precedence, so that the number of a pattern is its rank. Exact overrides
 * follow.
 */
export interface CompiledOverrides {
  readonly count: number;
  readonly patterns: number;
  /** Base of the polynomial hash. Secret, so that callers cannot choose colliding texts. */
  readonly base: number;
  /** All identifiers in one string, and the end of each. */
  readonly texts: string;
  readonly textEnds: Uint32Array;
  readonly ids: string;
  readonly idEnds: Uint32Array;
  readonly limits: Float64Array;
  readonly durations: Float64Array;
  /** Indexes of `kinds`. */
  readonly modes: Uint8Array;
  readonly createdAts: Float64Array;
  readonly textHashes: Int32Array;
  /** Hash table of all overrides by text, patterns included. Entries are numbers plus one; 0 is empty. */
  readonly exactTable: Int32Array;
  /** Patterns with more than one asterisk, ascending. */
  readonly multiple: Uint32Array;
  /** Distinct lengths of the prefixes of patterns with one asterisk. */
  readonly prefixLengths: Uint32Array;
  /** Hash table of groups. A group is all patterns with one asterisk and the same prefix. */
  readonly groupTable: Int32Array;
  readonly groupHashes: Int32Array;
  readonly groupPrefixLengths: Uint32Array;
  /** Distinct lengths of the suffixes of each group. */
  readonly suffixLengths: Uint32Array;
  readonly suffixLengthEnds: Uint32Array;
  /** Hash table of the patterns with one asterisk, by group and suffix. */
  readonly singleTable: Int32Array;
  readonly groups: Int32Array;
  readonly singleSuffixLengths: Uint32Array;
  /** Hashes of the suffixes, read backwards. */
  readonly singleSuffixHashes: Int32Array;
}

/** Overrides that are compiled per event loop turn. */
const SLICE = 250;

/** Compiles overrides in slices, without blocking the event loop. */
export async function compileOverrides(overrides: readonly Override[]): Promise<CompiledOverrides> {
  const order = inOrder(overrides);
  const compiler = new Compiler(order.sorted, order.patterns);
  for (let from = 0; from < overrides.length; from += SLICE) {
    await new Promise((resolve) => setImmediate(resolve));
    compiler.add(from, Math.min(from + SLICE, overrides.length));
  }
  return compiler.finish();
}

/** Patterns in order of precedence, then exact overrides. */
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
  readonly #modes: Uint8Array;
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
    this.#modes = new Uint8Array(count);
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
    const { id, identifier, limit, duration, mode, shadow, createdAt } = this.#sorted[number]!;
    this.#textEnds[number] = this.#textEnd += identifier.length;
    this.#idEnds[number] = this.#idEnd += id.length;
    this.#limits[number] = limit;
    this.#durations[number] = duration;
    this.#modes[number] = kinds.findIndex((kind) => kind.mode === mode && kind.shadow === shadow);
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
      modes: this.#modes,
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

/** Estimated memory of the compiled overrides and their search cache. */
export function compiledBytes(compiled: CompiledOverrides): number {
  let bytes = 2 * (compiled.texts.length + compiled.ids.length) + 100 * compiled.count;
  for (const value of Object.values(compiled)) if (ArrayBuffer.isView(value)) bytes += value.byteLength;
  return bytes;
}

/** A pattern, split at its asterisks. */
interface Segments {
  readonly prefix: string;
  readonly middle: readonly string[];
  readonly suffix: string;
}

/** Hashes of every prefix and suffix of the searched identifier, by length. Reused by every search. */
let prefixHashes = new Float64Array(1_025);
let suffixHashes = new Float64Array(1_025);

/**
 * The overrides of one namespace, searched in bounded time.
 *
 * Exact overrides are in a hash table. Patterns with one asterisk are in a hash table by prefix and suffix. For each
 * prefix length, the hash of the identifier's prefix finds a group of patterns; for each suffix length of that group, one
 * look-up finds a match. That is at most one look-up per pattern in the worst case, and usually one per length. The few
 * patterns with more asterisks are compared one by one in order of precedence, each in linear time.
 */
export class Overrides {
  readonly #compiled: CompiledOverrides;
  /** Overrides that were found before, by number. */
  readonly #found: (Override | undefined)[] = [];
  readonly #multiple: readonly Segments[];

  constructor(compiled: CompiledOverrides) {
    this.#compiled = compiled;
    this.#multiple = Array.from(compiled.multiple, (number) => segmentsOf(this.#text(number)));
  }

  get size(): number {
    return this.#compiled.count;
  }

  /** The override of an identifier: the exact one, or else the matching pattern with the highest precedence. */
  find(identifier: string): Override | undefined {
    const { count, patterns } = this.#compiled;
    if (count === 0) return undefined;
    const exact = this.#findExact(identifier);
    if (exact !== NONE) return this.#override(exact);
    if (patterns === 0) return undefined;
    const lineFeed = identifier.indexOf("\n");
    let best = this.#findSingle(identifier, lineFeed, false);
    // On a hash collision the search repeats and compares the text of every candidate.
    if (best !== NONE && !this.#matches(best, identifier)) best = this.#findSingle(identifier, lineFeed, true);
    best = this.#findMultiple(identifier, lineFeed, best);
    return best === NONE ? undefined : this.#override(best);
  }

  /** The override with exactly this identifier. */
  findExact(identifier: string): Override | undefined {
    if (this.#compiled.count === 0) return undefined;
    const exact = this.#findExact(identifier);
    return exact === NONE ? undefined : this.#override(exact);
  }

  /** All overrides that match an identifier, in the order of precedence: `find` gives the first one. */
  matching(identifier: string): Override[] {
    const { count, patterns } = this.#compiled;
    if (count === 0) return [];
    const exact = this.#findExact(identifier);
    const numbers = exact === NONE ? [] : [exact];
    for (let number = 0; number < patterns; number++) {
      if (number !== exact && this.#matches(number, identifier)) numbers.push(number);
    }
    return numbers.map((number) => this.#override(number));
  }

  /** Also computes the hashes of the identifier's prefixes. */
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

  /** The first matching pattern with one asterisk: by its hash, or with `compares` by its text. */
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
      // The asterisk matches no line feed, so the suffix must start at or before the next one.
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

  /** The first matching pattern with several asterisks, or `best` if that has higher precedence. */
  #findMultiple(identifier: string, lineFeed: number, best: number): number {
    const { multiple } = this.#compiled;
    for (let i = 0; i < multiple.length; i++) {
      const number = multiple[i]!;
      if (best !== NONE && number >= best) break;
      if (matchesSegments(this.#multiple[i]!, identifier, lineFeed)) return number;
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
      ...kinds[this.#compiled.modes[number]!]!,
      createdAt: createdAts[number]!,
    };
    this.#found[number] = override;
    return override;
  }
}

/** Whether the whole text matches the pattern. */
export function matchesPattern(pattern: string, text: string): boolean {
  return pattern.includes("*") ? matchesSegments(segmentsOf(pattern), text, text.indexOf("\n")) : pattern === text;
}

function segmentsOf(pattern: string): Segments {
  const segments = pattern.split("*");
  return {
    prefix: segments[0]!,
    middle: segments.slice(1, -1).filter((segment) => segment !== ""),
    suffix: segments.at(-1)!,
  };
}

/**
 * Searches each segment after the previous one and takes its first occurrence: a later one would leave less text for the
 * segments after it. So every character of the text is read once.
 *
 * @param lineFeed index of the first line feed in the text, or -1.
 */
function matchesSegments({ prefix, middle, suffix }: Segments, text: string, lineFeed: number): boolean {
  const end = text.length - suffix.length;
  let at = prefix.length;
  if (at > end || !text.startsWith(prefix) || !text.endsWith(suffix)) return false;
  for (const segment of middle) {
    const found = text.indexOf(segment, at);
    if (found === -1 || found + segment.length > end) return false;
    if (lineFeed !== -1 && hasLineFeed(text, at, found)) return false;
    at = found + segment.length;
  }
  return lineFeed === -1 || !hasLineFeed(text, at, end);
}

function hasLineFeed(text: string, from: number, to: number): boolean {
  const found = text.indexOf("\n", from);
  return found !== -1 && found < to;
}

/** The number of literal characters of a pattern, in code points. */
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

/** From 2^20 to 2^21: large, and its products with hashes are exact in doubles. */
function newBase(): number {
  return 2 ** 20 + (newFingerprintKey()[0] >>> 12);
}

/** The hash of a text with one more code unit. */
function extend(hashed: number, unit: number, base: number): number {
  const product = hashed * base + unit + 1;
  // Less than 2^22, so truncation with `| 0` equals Math.floor and is faster.
  const high = (product * 2 ** -31) | 0;
  const sum = product - high * 2 ** 31 + high;
  return sum >= PRIME ? sum - PRIME : sum;
}

/** The hash of a part of a text that follows a text with the hash `before`. */
function hash(text: string, from: number, to: number, before: number, base: number): number {
  let hashed = before;
  for (let i = from; i < to; i++) hashed = extend(hashed, text.charCodeAt(i), base);
  return hashed;
}

/** The hash of a text, read backwards. */
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

function lookUp(table: Int32Array, hashed: number, isMatch: (number: number) => boolean): number {
  const mask = table.length - 1;
  for (let at = mix(hashed) & mask; table[at] !== 0; at = (at + 1) & mask) {
    if (isMatch(table[at]! - 1)) return table[at]! - 1;
  }
  return NONE;
}
