/** What holds for an identifier, or for all that match a pattern. */
export interface Override {
  readonly id: string;
  /** `*` stands for any run of characters, also an empty one, but not for a line feed. All else stands for itself. */
  readonly identifier: string;
  /** Of two patterns with equally many literal characters the older one holds. */
  readonly createdAt: number;
}

/** More of a literal than this is not looked for; whether the rest is there is found out by matching. */
const KEYWORD_LENGTH_MAX = 64;

/**
 * The overrides of one namespace, prepared once so that a thousand patterns cost about as much as one.
 *
 * Each pattern is filed under a literal that every match must contain. One pass over an identifier finds all the
 * literals in it, and only the patterns filed under those are compared, the strongest first.
 */
export class Overrides<O extends Override> {
  readonly #exact = new Map<string, O>();
  /** Patterns from the strongest to the weakest. */
  readonly #patterns: readonly O[];
  /** Ranks of the patterns filed under each keyword, ascending, by the keyword's number. */
  readonly #filed: readonly (readonly number[])[];
  readonly #keywords: Keywords;
  /** Ranks of patterns that have no literal at all, ascending. */
  readonly #unfiled: readonly number[];

  constructor(overrides: readonly O[]) {
    for (const override of overrides) this.#exact.set(override.identifier, override);
    this.#patterns = overrides
      .filter(({ identifier }) => identifier.includes("*"))
      .map((override) => ({ override, literals: literalCharacters(override.identifier) }))
      .sort((a, b) => b.literals - a.literals || compareAge(a.override, b.override))
      .map(({ override }) => override);

    const candidates = this.#patterns.map(({ identifier }) => [...new Set(keywordsOf(identifier))]);
    const shared = new Map<string, number>();
    for (const keywords of candidates) {
      for (const keyword of keywords) shared.set(keyword, (shared.get(keyword) ?? 0) + 1);
    }
    const filed = new Map<string, number[]>();
    const unfiled: number[] = [];
    for (const [rank, keywords] of candidates.entries()) {
      if (keywords.length === 0) {
        unfiled.push(rank);
        continue;
      }
      // The literal that fewest patterns share tells most, and among those the longest one.
      const keyword = keywords.reduce((best, other) =>
        shared.get(other)! - shared.get(best)! < 0 ||
        (shared.get(other) === shared.get(best) && other.length > best.length)
          ? other
          : best,
      );
      const ranks = filed.get(keyword);
      if (ranks) ranks.push(rank);
      else filed.set(keyword, [rank]);
    }
    this.#filed = [...filed.values()];
    this.#unfiled = unfiled;
    this.#keywords = new Keywords([...filed.keys()]);
  }

  get size(): number {
    return this.#exact.size;
  }

  /** What holds for an identifier: what was set for exactly this text, else the strongest pattern that matches. */
  find(identifier: string): O | undefined {
    if (this.#exact.size === 0) return undefined;
    const exact = this.#exact.get(identifier);
    if (exact !== undefined || this.#patterns.length === 0) return exact;
    let best = this.#strongest(this.#unfiled, identifier, this.#patterns.length);
    this.#keywords.eachIn(identifier, (keyword) => {
      best = this.#strongest(this.#filed[keyword]!, identifier, best);
    });
    return this.#patterns[best];
  }

  /** The first of `ranks` that matches, or `best` where none is stronger than that. */
  #strongest(ranks: readonly number[], identifier: string, best: number): number {
    for (const rank of ranks) {
      if (rank >= best) break;
      if (matchesPattern(this.#patterns[rank]!.identifier, identifier)) return rank;
    }
    return best;
  }
}

/** Whether the whole text matches the pattern. */
export function matchesPattern(pattern: string, text: string): boolean {
  let at = 0;
  let next = 0;
  // The last `*` that was passed, and the text that it has been given so far ends before `resume`.
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    if (next < pattern.length && pattern[next] === "*") {
      star = next++;
      resume = at;
    } else if (next < pattern.length && pattern[next] === text[at]) {
      next++;
      at++;
    } else {
      // Earlier stars need not be tried again: what stands between them and this one was found as early as it can be.
      if (star === -1 || text[resume] === "\n") return false;
      next = star + 1;
      at = ++resume;
    }
  }
  while (next < pattern.length && pattern[next] === "*") next++;
  return next === pattern.length;
}

/** How many characters of a pattern stand for themselves, in code points. */
function literalCharacters(pattern: string): number {
  let count = 0;
  for (const character of pattern) if (character !== "*") count++;
  return count;
}

function compareAge(a: Override, b: Override): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

function keywordsOf(pattern: string): string[] {
  return pattern
    .split("*")
    .filter((literal) => literal !== "")
    .map((literal) => literal.slice(-KEYWORD_LENGTH_MAX));
}

const ROOT = 0;
const NONE = -1;

/**
 * Finds which of many keywords occur in a text, in one pass (Aho and Corasick, 1975): a trie of the keywords in which
 * every node knows the longest proper suffix of its text that is a node too.
 */
class Keywords {
  /** Transitions: an open hash of (node, code unit) to node. Two entries a transition, the second one the node. */
  readonly #transitions: Float64Array;
  readonly #mask: number;
  readonly #suffix: Int32Array;
  /** The keyword that ends at a node. */
  readonly #keyword: Int32Array;
  /** The nearest suffix at which a keyword ends. */
  readonly #ending: Int32Array;

  constructor(keywords: readonly string[]) {
    const nodesMax = 1 + keywords.reduce((sum, keyword) => sum + keyword.length, 0);
    let capacity = 4;
    while (capacity < 2 * nodesMax) capacity *= 2;
    this.#transitions = new Float64Array(2 * capacity).fill(NONE);
    this.#mask = capacity - 1;
    this.#keyword = new Int32Array(nodesMax).fill(NONE);
    this.#suffix = new Int32Array(nodesMax);
    this.#ending = new Int32Array(nodesMax).fill(NONE);

    const parents = new Int32Array(nodesMax);
    const units = new Uint16Array(nodesMax);
    const depths = new Uint8Array(nodesMax);
    let nodes = 1;
    for (const [number, keyword] of keywords.entries()) {
      let node = ROOT;
      for (let i = 0; i < keyword.length; i++) {
        const unit = keyword.charCodeAt(i);
        const slot = this.#slot(node, unit);
        if (this.#transitions[slot] === NONE) {
          this.#transitions[slot] = node * 65_536 + unit;
          this.#transitions[slot + 1] = nodes;
          parents[nodes] = node;
          units[nodes] = unit;
          depths[nodes] = i + 1;
          nodes++;
        }
        node = this.#transitions[slot + 1]!;
      }
      this.#keyword[node] = number;
    }

    // Suffixes are shorter than what they end, so nodes come in the order of their depth.
    const order = Int32Array.from({ length: nodes - 1 }, (_, i) => i + 1).sort((a, b) => depths[a]! - depths[b]!);
    for (const node of order) {
      const suffix = parents[node] === ROOT ? ROOT : this.#step(this.#suffix[parents[node]!]!, units[node]!);
      this.#suffix[node] = suffix;
      this.#ending[node] = this.#keyword[suffix] === NONE ? this.#ending[suffix]! : suffix;
    }
  }

  /** Calls `found` with the number of every keyword in the text, once for each place where it occurs. */
  eachIn(text: string, found: (keyword: number) => void): void {
    let node = ROOT;
    for (let i = 0; i < text.length; i++) {
      node = this.#step(node, text.charCodeAt(i));
      if (this.#keyword[node] !== NONE) found(this.#keyword[node]!);
      for (let end = this.#ending[node]!; end !== NONE; end = this.#ending[end]!) found(this.#keyword[end]!);
    }
  }

  /** The node of the longest suffix that goes on with this code unit. */
  #step(from: number, unit: number): number {
    for (let node = from; ; node = this.#suffix[node]!) {
      const slot = this.#slot(node, unit);
      if (this.#transitions[slot] !== NONE) return this.#transitions[slot + 1]!;
      if (node === ROOT) return ROOT;
    }
  }

  /** Where the transition is, or would be. */
  #slot(node: number, unit: number): number {
    const key = node * 65_536 + unit;
    let at = (Math.imul(node, 0x9e3779b1) ^ Math.imul(unit, 0x85ebca6b)) >>> 7;
    for (;;) {
      const slot = 2 * (at & this.#mask);
      if (this.#transitions[slot] === key || this.#transitions[slot] === NONE) return slot;
      at++;
    }
  }
}
