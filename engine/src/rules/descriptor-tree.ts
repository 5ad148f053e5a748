import { type DescriptorNode, descriptorUnits } from "./descriptor-node.ts";

/** What a descriptor matches: any value, one value, or the values that begin with a text. */
const [ANY, EXACT, PREFIX] = [0, 1, 2];

/** Bits of `flags`. */
const [LIMITED, UNLIMITED, SHADOW, QUOTA, SHARED] = [1, 2, 4, 8, 16];

const NONE = -1;

/**
 * A tree of descriptors, compiled for searching, in a few strings and arrays that are cheap to copy between threads. Nodes are
 * in the order of their levels, the root first. The children of a node follow each other, sorted by key, kind and text.
 */
export interface CompiledDescriptors {
  readonly count: number;
  /** The key of each node, and the value or the prefix that it matches, in one string, and the end of each. */
  readonly texts: string;
  readonly textEnds: Uint32Array;
  readonly kinds: Uint8Array;
  readonly flags: Uint8Array;
  readonly childStarts: Uint32Array;
  readonly childEnds: Uint32Array;
  readonly requests: Uint32Array;
  /** The number of the unit in the protocol. */
  readonly units: Uint8Array;
  /** Of a prefix: the longest other one of the same key that it begins with. */
  readonly enclosing: Int32Array;
  /** Of a prefix: the one that was written first, of itself and those that it begins with. */
  readonly earliest: Int32Array;
  /** The names of limits, each once, and those of each node and of what it replaces, as their indexes. */
  readonly names: readonly string[];
  readonly nameOf: Int32Array;
  readonly replaced: Uint32Array;
  readonly replacedEnds: Uint32Array;
}

/** Nodes that are compiled per turn of the event loop. */
const SLICE = 500;

/** Compiles a valid tree in slices, without blocking the event loop. */
export async function compileDescriptors(tree: readonly DescriptorNode[]): Promise<CompiledDescriptors> {
  const compiler = new Compiler(tree);
  while (compiler.step(SLICE)) await new Promise((resolve) => setImmediate(resolve));
  return compiler.finish();
}

interface Placed {
  readonly node: DescriptorNode;
  readonly kind: number;
  readonly text: string;
  /** The place among its siblings, as they were written. */
  readonly order: number;
}

/** A prefix among its siblings, and the one that was written first, of itself and those that it begins with. */
interface Prefix {
  readonly number: number;
  readonly text: string;
  readonly earliest: { readonly number: number; readonly order: number };
}

class Compiler {
  readonly #placed: (Placed | null)[] = [null];
  readonly #texts: string[] = [];
  readonly #textEnds: number[] = [];
  readonly #childStarts: number[] = [];
  readonly #childEnds: number[] = [];
  readonly #enclosing: number[] = [NONE];
  readonly #earliest: number[] = [NONE];
  readonly #names = new Map<string, number>();
  readonly #nameOf: number[] = [];
  readonly #replaced: number[] = [];
  readonly #replacedEnds: number[] = [];
  readonly #tree: readonly DescriptorNode[];
  #textEnd = 0;
  #next = 0;

  constructor(tree: readonly DescriptorNode[]) {
    this.#tree = tree;
  }

  /** Compiles some nodes. Returns whether there are more. */
  step(nodes: number): boolean {
    for (let done = 0; done < nodes && this.#next < this.#placed.length; done++) this.#compile(this.#next++);
    return this.#next < this.#placed.length;
  }

  #compile(number: number): void {
    const placed = this.#placed[number];
    for (const text of placed ? [placed.node.key, placed.text] : ["", ""]) {
      this.#texts.push(text);
      this.#textEnd += text.length;
      this.#textEnds.push(this.#textEnd);
    }
    const { name, replaces = [] } = placed?.node.rate_limit ?? {};
    this.#nameOf.push(name ? this.#nameNumber(name) : NONE);
    for (const replaced of replaces) this.#replaced.push(this.#nameNumber(replaced.name));
    this.#replacedEnds.push(this.#replaced.length);
    this.#childStarts.push(this.#placed.length);
    this.#placeChildren(placed ? (placed.node.descriptors ?? []) : this.#tree);
    this.#childEnds.push(this.#placed.length);
  }

  #nameNumber(name: string): number {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    this.#names.set(name, this.#names.size);
    return this.#names.size - 1;
  }

  #placeChildren(children: readonly DescriptorNode[]): void {
    const sorted = children.map((node, order): Placed => {
      const value = node.value ?? "";
      if (value === "") return { node, kind: ANY, text: "", order };
      return value.endsWith("*")
        ? { node, kind: PREFIX, text: value.slice(0, -1), order }
        : { node, kind: EXACT, text: value, order };
    });
    sorted.sort((a, b) => compare(a.node.key, b.node.key) || a.kind - b.kind || compare(a.text, b.text));
    // In this order, the prefixes that one begins with are before it, the longest one last.
    let open: Prefix[] = [];
    let key = "";
    for (const one of sorted) {
      const number = this.#placed.push(one) - 1;
      const own = { number, order: one.order };
      if (one.kind !== PREFIX) {
        this.#enclosing.push(NONE);
        this.#earliest.push(number);
        continue;
      }
      if (one.node.key !== key) open = [];
      key = one.node.key;
      let outer = open.at(-1);
      while (outer !== undefined && !one.text.startsWith(outer.text)) {
        open.pop();
        outer = open.at(-1);
      }
      const earliest = outer !== undefined && outer.earliest.order < one.order ? outer.earliest : own;
      open.push({ number, text: one.text, earliest });
      this.#enclosing.push(outer?.number ?? NONE);
      this.#earliest.push(earliest.number);
    }
  }

  finish(): CompiledDescriptors {
    const limits = this.#placed.map((placed) => placed?.node.rate_limit);
    return {
      count: this.#placed.length,
      texts: this.#texts.join(""),
      textEnds: Uint32Array.from(this.#textEnds),
      kinds: Uint8Array.from(this.#placed, (placed) => placed?.kind ?? ANY),
      flags: Uint8Array.from(this.#placed, (placed) => (placed === null ? 0 : flagsOf(placed.node))),
      childStarts: Uint32Array.from(this.#childStarts),
      childEnds: Uint32Array.from(this.#childEnds),
      requests: Uint32Array.from(limits, (limit) => limit?.requests_per_unit ?? 0),
      units: Uint8Array.from(limits, (limit) => (limit?.unit ? descriptorUnits.indexOf(limit.unit) + 1 : 0)),
      enclosing: Int32Array.from(this.#enclosing),
      earliest: Int32Array.from(this.#earliest),
      names: [...this.#names.keys()],
      nameOf: Int32Array.from(this.#nameOf),
      replaced: Uint32Array.from(this.#replaced),
      replacedEnds: Uint32Array.from(this.#replacedEnds),
    };
  }
}

function flagsOf({ rate_limit: limit, shadow_mode, quota_mode, share_threshold }: DescriptorNode): number {
  return (
    (limit ? LIMITED : 0) |
    (limit?.unlimited ? UNLIMITED : 0) |
    (shadow_mode ? SHADOW : 0) |
    (quota_mode ? QUOTA : 0) |
    (share_threshold ? SHARED : 0)
  );
}

/** Estimated memory of a compiled tree. */
export function descriptorsBytes(compiled: CompiledDescriptors): number {
  let bytes = 500 + 2 * compiled.texts.length;
  for (const name of compiled.names) bytes += 50 + 2 * name.length;
  for (const value of Object.values(compiled)) if (ArrayBuffer.isView(value)) bytes += value.byteLength;
  return bytes;
}

/** A key and its value, of a descriptor in a call. */
export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** The limit of the descriptor of a tree that matches all entries of one in a call. */
export interface DescriptorLimit {
  readonly isUnlimited: boolean;
  readonly requestsPerUnit: number;
  /** The number of the unit in the protocol. */
  readonly unit: number;
  /** Empty: it has none. */
  readonly name: string;
  /** The names of the limits that do not apply beside this one. */
  readonly replaces: readonly string[];
  readonly isShadow: boolean;
  readonly isQuota: boolean;
  /** By the index of an entry: the value with `*` whose counter all values that it matches share. Undefined: none is shared. */
  readonly shared: readonly (string | undefined)[] | undefined;
}

/**
 * The limits of a namespace by descriptors, searched level by level: the child with the key and the value of the entry, else
 * the one with its key that was written first among those whose value with `*` matches, else the one with its key and no
 * value. A search never goes back, so it takes the logarithm of the number of children for each entry, whatever the values are.
 */
export class DescriptorTree {
  readonly #compiled: CompiledDescriptors;

  constructor(compiled: CompiledDescriptors) {
    this.#compiled = compiled;
  }

  /** Undefined: no descriptor of the tree matches all entries, or the one that does has no limit. */
  find(entries: readonly DescriptorEntry[]): DescriptorLimit | undefined {
    let node = 0;
    let shared: (string | undefined)[] | undefined;
    let level = 0;
    for (const entry of entries) {
      node = this.#child(node, entry);
      if (node === NONE) return undefined;
      if (this.#has(node, SHARED)) {
        shared ??= [];
        shared[level] = `${this.#text(node)}*`;
      }
      level++;
    }
    return this.#has(node, LIMITED) ? this.#limit(node, shared) : undefined;
  }

  #limit(node: number, shared: DescriptorLimit["shared"]): DescriptorLimit {
    const { requests, units, names, nameOf, replaced, replacedEnds } = this.#compiled;
    const nameAt = (number: number) => names[number] ?? "";
    return {
      isUnlimited: this.#has(node, UNLIMITED),
      requestsPerUnit: at(requests, node),
      unit: at(units, node),
      name: nameAt(at(nameOf, node)),
      replaces: Array.from(replaced.subarray(replacedEnds[node - 1], replacedEnds[node]), nameAt),
      isShadow: this.#has(node, SHADOW),
      isQuota: this.#has(node, QUOTA),
      shared,
    };
  }

  /** The child that matches an entry. */
  #child(node: number, { key, value }: DescriptorEntry): number {
    // An empty text is before all others of its kind, so the node before it is of another kind or key.
    if (value !== "") {
      const exact = this.#last(node, key, EXACT, value);
      if (exact !== NONE && this.#is(exact, key, EXACT) && this.#text(exact) === value) return exact;
    }
    const prefix = this.#last(node, key, PREFIX, value);
    if (prefix !== NONE && this.#is(prefix, key, PREFIX)) {
      // What the value begins with is this prefix, or one that this prefix begins with.
      const common = commonLength(this.#text(prefix), value);
      for (let one = prefix; one !== NONE; one = at(this.#compiled.enclosing, one)) {
        if (this.#textLength(one) <= common) return at(this.#compiled.earliest, one);
      }
    }
    const any = this.#last(node, key, ANY, "");
    return any !== NONE && this.#is(any, key, ANY) ? any : NONE;
  }

  /** The last child that is not after this key, kind and text. */
  #last(node: number, key: string, kind: number, text: string): number {
    let from = at(this.#compiled.childStarts, node);
    let to = at(this.#compiled.childEnds, node);
    const start = from;
    while (from < to) {
      const middle = (from + to) >>> 1;
      const order =
        compare(this.#key(middle), key) || at(this.#compiled.kinds, middle) - kind || compare(this.#text(middle), text);
      if (order <= 0) from = middle + 1;
      else to = middle;
    }
    return from === start ? NONE : from - 1;
  }

  #has(node: number, flag: number): boolean {
    return (at(this.#compiled.flags, node) & flag) !== 0;
  }

  #is(node: number, key: string, kind: number): boolean {
    return this.#compiled.kinds[node] === kind && this.#key(node) === key;
  }

  #key(node: number): string {
    const { texts, textEnds } = this.#compiled;
    return texts.slice(textEnds[2 * node - 1], textEnds[2 * node]);
  }

  #text(node: number): string {
    const { texts, textEnds } = this.#compiled;
    return texts.slice(textEnds[2 * node], textEnds[2 * node + 1]);
  }

  #textLength(node: number): number {
    const { textEnds } = this.#compiled;
    return at(textEnds, 2 * node + 1) - at(textEnds, 2 * node);
  }
}

/** The number at an index that exists. */
function at(numbers: Uint8Array | Uint32Array | Int32Array, index: number): number {
  return numbers[index] ?? NONE;
}

function commonLength(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  let common = 0;
  while (common < length && a.charCodeAt(common) === b.charCodeAt(common)) common++;
  return common;
}

/** By code units, so that texts with the same beginning follow each other. */
function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
