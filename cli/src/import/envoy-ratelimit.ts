import type { Node, YAMLMap } from "yaml";
import {
  canonicalDescriptors,
  DESCRIPTOR_DEPTH_MAX,
  DESCRIPTOR_NODES_MAX,
  type DescriptorNode,
  type DescriptorRateLimit,
  descriptorUnits,
} from "../../../engine/src/rules/descriptor-node.ts";
import { type Attempts, call, type Endpoint, ServiceError } from "../call.ts";
import { readFile } from "../input.ts";
import { CommandError } from "../output.ts";
import { type PlacedYaml, parsePlacedYaml } from "../yaml.ts";

/** Bound of each file. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Uses of one anchor. What they stand for counts among the descriptors. */
const ALIASES_MAX = 100;
/** The mistakes of all files that are printed. */
const MISTAKES_MAX = 20;
const UINT32_MAX = 2 ** 32 - 1;
const TEXT_MAX = 512;
const NAME = /^[ !#-[\]-~]{1,128}$/;

/** The limits of one domain. */
export interface Configuration {
  readonly file: string;
  readonly domain: string;
  readonly descriptors: readonly DescriptorNode[];
}

/**
 * Reads configurations of envoyproxy/ratelimit.
 *
 * @throws {CommandError} with the line of everything that cannot be kept.
 */
export async function readConfigurations(files: readonly string[]): Promise<Configuration[]> {
  const mistakes: string[] = [];
  const read: Configuration[] = [];
  for (const file of files) {
    const text = await readFile(file, FILE_BYTES_MAX);
    const parsed = await parsePlacedYaml(text, file, { aliasesMax: ALIASES_MAX, isPublic: true, longNumbers: "error" });
    const { isAlias, isMap, isScalar, isSeq } = await import("yaml");
    const reader = new ConfigurationReader(file, parsed, { isAlias, isMap, isScalar, isSeq });
    const { domain, descriptors } = reader.read();
    const same = read.find((other) => other.domain === domain);
    if (same) reader.report(0, `the domain '${domain}' is also that of ${same.file}. Join them in one file`);
    read.push({ file, domain, descriptors });
    mistakes.push(...reader.mistakes);
  }
  if (mistakes.length > 0) {
    const more = mistakes.length - MISTAKES_MAX;
    const details = [...mistakes.slice(0, MISTAKES_MAX), ...(more > 0 ? [`… and ${more} more.`] : [])];
    throw new CommandError("The configuration cannot be imported as it is. Nothing was changed.", { details });
  }
  return read;
}

/** The parts of the package that are needed, which is loaded only for commands that read YAML. */
type Kinds = Pick<typeof import("yaml"), "isAlias" | "isMap" | "isScalar" | "isSeq">;
type Value = Node | null | undefined;
type Members = ReadonlyMap<string, Value>;

const rootMembers = ["domain", "descriptors"];
const nodeMembers = [
  "key",
  "value",
  "rate_limit",
  "descriptors",
  "shadow_mode",
  "quota_mode",
  "detailed_metric",
  "value_to_metric",
  "share_threshold",
];
const limitMembers = ["requests_per_unit", "unit", "unlimited", "name", "replaces"];

class ConfigurationReader {
  /** Each once: an alias repeats what it stands for. */
  readonly mistakes = new Set<string>();
  readonly #file: string;
  readonly #parsed: PlacedYaml | undefined;
  readonly #kinds: Kinds;
  #count = 0;

  constructor(file: string, parsed: PlacedYaml | undefined, kinds: Kinds) {
    this.#file = file;
    this.#parsed = parsed;
    this.#kinds = kinds;
  }

  read(): Pick<Configuration, "domain" | "descriptors"> {
    const root = this.#parsed?.document.contents;
    const members = this.#members(root, rootMembers, "the configuration");
    const domain = this.#text(members.get("domain"));
    if (domain === "") this.report(root, "it has no domain");
    if (domain.length > TEXT_MAX) this.report(members.get("domain"), `the domain has more than ${TEXT_MAX} characters`);
    return { domain, descriptors: canonicalDescriptors(this.#nodes(members.get("descriptors"), 1)) };
  }

  /** Notes what cannot be kept, with its line. */
  report(at: Value | 0, what: string): void {
    const offset = at === 0 ? 0 : (at?.range?.[0] ?? 0);
    this.mistakes.add(`${this.#file}:${this.#parsed?.lineAt(offset) ?? 1}: ${what}.`);
  }

  #nodes(list: Value, depth: number): DescriptorNode[] {
    const seen = new Set<string>();
    return this.#items(list, "descriptors").flatMap((item) => {
      // Aliases can stand for many descriptors.
      if (++this.#count > DESCRIPTOR_NODES_MAX) {
        if (this.#count === DESCRIPTOR_NODES_MAX + 1) {
          this.report(item, `it has more than ${DESCRIPTOR_NODES_MAX} descriptors`);
        }
        return [];
      }
      if (depth > DESCRIPTOR_DEPTH_MAX) {
        this.report(item, `descriptors are nested deeper than ${DESCRIPTOR_DEPTH_MAX} levels`);
        return [];
      }
      const node = this.#node(item, depth);
      const identity = JSON.stringify([node.key, node.value ?? ""]);
      if (seen.has(identity)) this.report(item, "the descriptor has the key and the value of an earlier one");
      seen.add(identity);
      return [node];
    });
  }

  #node(item: Value, depth: number): DescriptorNode {
    const members = this.#members(item, nodeMembers, "a descriptor");
    const flag = (name: string) => this.#flag(members.get(name), name);
    const [key, value] = [this.#text(members.get("key")), this.#text(members.get("value"))];
    if (key === "") this.report(members.get("key") ?? item, "the descriptor has no key");
    for (const [name, text] of Object.entries({ key, value })) {
      if (text.length > TEXT_MAX) this.report(members.get(name), `the ${name} has more than ${TEXT_MAX} characters`);
      if (text.includes("\0") || !text.isWellFormed()) this.report(members.get(name), `the ${name} is not a text`);
    }
    if (value === "" && key.endsWith("*")) {
      this.report(
        members.get("key"),
        "a key that ends with '*' matches other keys there. Write the keys, or a value with '*'",
      );
    }
    const share_threshold = flag("share_threshold");
    if (share_threshold && !value.endsWith("*")) {
      this.report(members.get("share_threshold"), "share_threshold needs a value that ends with '*'");
    }
    return {
      key,
      value,
      rate_limit: this.#limit(members.get("rate_limit")),
      shadow_mode: flag("shadow_mode"),
      quota_mode: flag("quota_mode"),
      share_threshold,
      detailed_metric: flag("detailed_metric"),
      value_to_metric: flag("value_to_metric"),
      descriptors: this.#nodes(members.get("descriptors"), depth + 1),
    };
  }

  #limit(at: Value): DescriptorRateLimit | undefined {
    if (this.#isEmpty(at)) return undefined;
    const members = this.#members(at, limitMembers, "rate_limit");
    const unlimited = this.#flag(members.get("unlimited"), "unlimited");
    const written = this.#text(members.get("unit"));
    const unit = descriptorUnits.find((one) => one === written.toLowerCase());
    if (unlimited && unit) this.report(members.get("unit"), "a limit has no unit beside unlimited");
    if (!unlimited && !unit) {
      const units = descriptorUnits.join(", ");
      this.report(members.get("unit") ?? at, `the unit is '${written}'. It must be one of ${units}`);
    }
    // There, a limit without a number denies everything.
    const requests = this.#text(members.get("requests_per_unit")) || "0";
    const requests_per_unit = Number(requests);
    if (!/^\d+$/.test(requests) || requests_per_unit > UINT32_MAX) {
      this.report(members.get("requests_per_unit"), `requests_per_unit is not an integer from 0 to ${UINT32_MAX}`);
    }
    const name = this.#name(members.get("name"));
    const replaces = this.#items(members.get("replaces"), "replaces").map((item) => {
      const replaced = this.#name(this.#members(item, ["name"], "replaces").get("name"));
      if (replaced === "") this.report(item, "an entry of replaces has no name");
      else if (replaced === name) this.report(item, "a limit cannot replace itself");
      return { name: replaced };
    });
    return unlimited ? { unlimited, name, replaces } : { requests_per_unit, unit, name, replaces };
  }

  #name(at: Value): string {
    const name = this.#text(at);
    if (name !== "" && !NAME.test(name)) {
      this.report(
        at,
        "a name of a limit has at most 128 printable ASCII characters, without quotation marks and backslashes",
      );
    }
    return name;
  }

  /** The members of a map. What it may not have is reported. */
  #members(at: Value, known: readonly string[], what: string): Members {
    const found = this.#resolved(at);
    if (!this.#kinds.isMap(found)) {
      this.report(at, `${what} must be a map`);
      return new Map();
    }
    const members = new Map<string, Value>();
    for (const { key, value } of (found as YAMLMap<Node, Node | null>).items) {
      const name = this.#text(key);
      if (known.includes(name)) members.set(name, value);
      else this.report(key, `'${name}' is not known in ${what}`);
    }
    return members;
  }

  #items(at: Value, name: string): readonly Value[] {
    if (this.#isEmpty(at)) return [];
    const found = this.#resolved(at);
    if (this.#kinds.isSeq(found)) return found.items as Node[];
    this.report(at, `${name} must be a list`);
    return [];
  }

  /** The text as it was written: YAML takes some values for numbers. */
  #text(at: Value): string {
    const found = this.#resolved(at);
    if (this.#isEmpty(found)) return "";
    if (this.#kinds.isScalar(found)) return typeof found.value === "string" ? found.value : (found.source ?? "");
    this.report(at, "it must be a text");
    return "";
  }

  #flag(at: Value, name: string): boolean {
    const found = this.#resolved(at);
    if (this.#isEmpty(found)) return false;
    if (this.#kinds.isScalar(found) && typeof found.value === "boolean") return found.value;
    this.report(at, `${name} must be true or false`);
    return false;
  }

  #isEmpty(at: Value): boolean {
    const found = this.#resolved(at);
    return !found || (this.#kinds.isScalar(found) && found.value === null);
  }

  #resolved(at: Value): Value {
    return this.#parsed && this.#kinds.isAlias(at) ? at.resolve(this.#parsed.document) : at;
  }
}

/** What an import of a configuration did, or would do. */
export interface ImportedDomain {
  readonly file: string;
  readonly domain: string;
  readonly descriptors: number;
  readonly limits: number;
  readonly outcome: "new" | "changed" | "unchanged" | "valid";
}

/** Gives each domain its tree. A namespace that is missing is made; one that has the tree stays as it is. */
export async function importTrees(
  configurations: readonly Configuration[],
  endpoint: Endpoint | undefined,
  { timeout, isDryRun }: { timeout: number; isDryRun: boolean },
): Promise<ImportedDomain[]> {
  const attempts = { repeatable: "always", timeout, retries: 12, waitMax: 120_000 } satisfies Attempts;
  const imported: ImportedDomain[] = [];
  for (const { file, domain, descriptors } of configurations) {
    const counted = { file, domain, ...countOf(descriptors) };
    if (endpoint === undefined) {
      imported.push({ ...counted, outcome: "valid" });
      continue;
    }
    const ask = async (operation: string, body: object) =>
      (await call(endpoint, operation, JSON.stringify(body), attempts)).data;
    const former = await treeOf(domain, ask);
    const isSame = JSON.stringify(former?.descriptors) === JSON.stringify(descriptors);
    const outcome = former === undefined ? "new" : isSame ? "unchanged" : "changed";
    if (!isDryRun && outcome !== "unchanged") {
      if (former === undefined) {
        // The first use of a name creates its namespace. This one charges nothing.
        const first = { identifier: "latchkey import", limit: 1, duration: 1_000, cost: 0 };
        await ask("ratelimits.limit", { namespace: domain, ...first });
      }
      const { atomic = false, metadata = false } = former ?? {};
      await ask("ratelimits.setDescriptors", { namespace: domain, descriptors, atomic, metadata });
    }
    imported.push({ ...counted, outcome });
  }
  return imported;
}

type Tree = { descriptors: readonly DescriptorNode[]; atomic: boolean; metadata: boolean };

/** Undefined: there is no such namespace. */
async function treeOf(
  namespace: string,
  ask: (operation: string, body: object) => Promise<Tree>,
): Promise<Tree | undefined> {
  try {
    return await ask("ratelimits.getDescriptors", { namespace });
  } catch (error) {
    if (error instanceof ServiceError && error.type === "data/ratelimit_namespace_not_found") return undefined;
    throw error;
  }
}

function countOf(nodes: readonly DescriptorNode[]): { descriptors: number; limits: number } {
  const counted = { descriptors: 0, limits: 0 };
  for (const { rate_limit, descriptors = [] } of nodes) {
    const below = countOf(descriptors);
    counted.descriptors += 1 + below.descriptors;
    counted.limits += (rate_limit ? 1 : 0) + below.limits;
  }
  return counted;
}
