import { readDuration } from "../body.ts";
import { CommandError } from "../output.ts";
import type { ServiceRules } from "../service-rules.ts";
import { parseYaml } from "../yaml.ts";
import type { Document } from "./document.ts";

/** The longest document, in bytes. */
export const DOCUMENT_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Reads a document from YAML or JSON.
 *
 * @throws {CommandError} with a line for each mistake.
 */
export async function readDocument(
  text: string,
  name: string,
  loadRules: () => Promise<ServiceRules>,
): Promise<Document> {
  const value = await parseYaml(text, name, { aliasesMax: 100, isPublic: true, longNumbers: "error" });
  const read = (await loadRules()).readDocument(withDurations(value ?? {}));
  if ("document" in read) return read.document;
  throw new CommandError(`${name} is not valid.`, {
    details: read.errors.map(({ message, fix }) => [message, fix].filter(Boolean).join(". ")),
  });
}

/** The document with durations in milliseconds: a person writes `1m`. */
function withDurations(document: unknown): unknown {
  if (!isObject(document)) return document;
  const withTimeout = (api: unknown) =>
    isObject(api) && isObject(api.upstream) ? { ...api, upstream: withDuration(api.upstream, "timeout") } : api;
  const withOverrides = (namespace: unknown) =>
    isObject(namespace) && Array.isArray(namespace.overrides)
      ? { ...namespace, overrides: namespace.overrides.map((override) => withDuration(override, "duration")) }
      : namespace;
  const withLimits = (plan: unknown) =>
    isObject(plan) && Array.isArray(plan.ratelimits)
      ? { ...plan, ratelimits: plan.ratelimits.map((limit) => withDuration(limit, "duration")) }
      : plan;
  return {
    ...document,
    ...(Array.isArray(document.plans) && { plans: document.plans.map(withLimits) }),
    ...(Array.isArray(document.apis) && { apis: document.apis.map(withTimeout) }),
    ...(Array.isArray(document.namespaces) && { namespaces: document.namespaces.map(withOverrides) }),
  };
}

function withDuration(entry: unknown, member: string): unknown {
  if (!isObject(entry)) return entry;
  const text = entry[member];
  return typeof text === "string" ? { ...entry, [member]: readDuration(text) ?? text } : entry;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
