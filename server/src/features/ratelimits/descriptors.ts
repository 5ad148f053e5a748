import { z } from "zod";
import {
  canonicalDescriptors,
  DESCRIPTOR_DEPTH_MAX,
  DESCRIPTOR_NODES_MAX,
  type DescriptorNode,
  descriptorUnits,
} from "../../../../engine/src/rules/descriptor-node.ts";
import { issuesOf } from "../../platform/rpc/validate.ts";
import { integer, text } from "../../platform/vocabulary/schema.ts";

/** As long as an identifier of other calls may be. */
const TEXT_MAX = 512;
/** The largest text of a tree. */
export const DESCRIPTORS_BYTES_MAX = 1024 * 1024;
const UINT32_MAX = 2 ** 32 - 1;

/** Names go into headers of answers, between quotation marks. */
const LimitName = text(1, 128, {
  regex: /^[ !#-[\]-~]+$/,
  says: "may hold printable ASCII characters without quotation marks and backslashes",
});

const RateLimit = z.strictObject({
  requests_per_unit: integer(0, UINT32_MAX).optional(),
  unit: z.enum(descriptorUnits).optional(),
  unlimited: z.boolean().optional(),
  name: LimitName.optional(),
  replaces: z
    .array(z.strictObject({ name: LimitName }))
    .max(32)
    .optional(),
});

const Node = z.strictObject({
  key: text(1, TEXT_MAX),
  value: text(0, TEXT_MAX).optional(),
  rate_limit: RateLimit.optional(),
  shadow_mode: z.boolean().optional(),
  quota_mode: z.boolean().optional(),
  share_threshold: z.boolean().optional(),
  detailed_metric: z.boolean().optional(),
  value_to_metric: z.boolean().optional(),
  get descriptors() {
    return z.array(Node).optional();
  },
});
const Nodes = z.array(Node);

type Issues = z.core.$ZodRawIssue[];

/**
 * A tree of descriptors. Its schema in the API is a list of any objects, because its levels nest; this checks it. Depth and
 * number are checked first, so that nothing else has to.
 */
export const Descriptors = z
  .array(z.record(z.string(), z.unknown()))
  .check(({ value, issues }) => {
    const tooLarge = sizeIssue(value);
    if (tooLarge) return void issues.push(tooLarge);
    const found = issuesOf(Nodes, value);
    if (found.length > 0) return void issues.push(...(found as Issues));
    const nodes = value as unknown as readonly DescriptorNode[];
    checkNodes(nodes, [], issues);
    if (Buffer.byteLength(JSON.stringify(nodes)) > DESCRIPTORS_BYTES_MAX) {
      issues.push({
        code: "custom",
        input: value,
        message: `is too large: at most ${DESCRIPTORS_BYTES_MAX} bytes`,
        params: { keyword: "maxBytes", fix: "Divide it between several namespaces." },
      });
    }
  })
  .describe(
    "The tree, as the configuration of envoyproxy/ratelimit writes it. Each descriptor has a `key` and may have `value`, " +
      "`rate_limit` (`requests_per_unit`, `unit`, `unlimited`, `name`, `replaces`), `shadow_mode`, `quota_mode`, " +
      "`share_threshold`, `detailed_metric`, `value_to_metric` and `descriptors`, which are the next level. At most " +
      `${DESCRIPTOR_NODES_MAX} descriptors on ${DESCRIPTOR_DEPTH_MAX} levels, of 1 MiB together.`,
  );

/** The tree as it is stored: valid, in canonical form. */
export function storedTree(descriptors: z.output<typeof Descriptors>): string {
  return JSON.stringify(canonicalDescriptors(descriptors as unknown as readonly DescriptorNode[]));
}

/** Counts without recursion, and stops at the maximum. */
function sizeIssue(descriptors: readonly object[]): Issues[number] | undefined {
  const issue = (keyword: string, message: string, fix: string): Issues[number] => {
    return { code: "custom", input: descriptors, message, params: { keyword, fix } };
  };
  let level: unknown[] = [...descriptors];
  let count = 0;
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > DESCRIPTOR_DEPTH_MAX) {
      return issue(
        "maxDepth",
        `is nested deeper than ${DESCRIPTOR_DEPTH_MAX} levels`,
        `Nest it at most ${DESCRIPTOR_DEPTH_MAX} levels deep.`,
      );
    }
    count += level.length;
    if (count > DESCRIPTOR_NODES_MAX) {
      return issue(
        "maxItems",
        `has more than ${DESCRIPTOR_NODES_MAX} descriptors`,
        "Use a descriptor without a value, or with a value that ends with an asterisk, in place of many.",
      );
    }
    level = level.flatMap((node) => {
      const children = typeof node === "object" && node !== null && "descriptors" in node ? node.descriptors : [];
      return Array.isArray(children) ? children : [];
    });
  }
  return undefined;
}

/** What schemas cannot say. Depth and number are checked before. */
function checkNodes(nodes: readonly DescriptorNode[], path: readonly PropertyKey[], issues: Issues): void {
  const seen = new Map<string, Set<string>>();
  for (const [i, node] of nodes.entries()) {
    const at = [...path, i];
    const report = (where: readonly PropertyKey[], keyword: string, message: string, fix: string) =>
      issues.push({ code: "custom", input: node, path: [...at, ...where], message, params: { keyword, fix } });
    const { key, value = "", share_threshold, rate_limit: limit, descriptors } = node;
    const values = seen.get(key) ?? new Set();
    seen.set(key, values);
    if (values.has(value)) {
      report([], "uniqueItems", "has the key and the value of an earlier one", "Join them, or remove one of them.");
    }
    values.add(value);
    if (share_threshold && !value.endsWith("*")) {
      report(
        ["share_threshold"],
        "format",
        "needs a value that ends with an asterisk",
        "Remove it, or add an asterisk to the value.",
      );
    }
    if (limit) checkLimit(limit, report);
    if (descriptors) checkNodes(descriptors, [...at, "descriptors"], issues);
  }
}

type Report = (where: readonly PropertyKey[], keyword: string, message: string, fix: string) => void;

function checkLimit(limit: NonNullable<DescriptorNode["rate_limit"]>, report: Report): void {
  const { unlimited, unit, requests_per_unit: requests, name, replaces = [] } = limit;
  if (unlimited && unit !== undefined) {
    report(["rate_limit", "unlimited"], "format", "must not be true beside `unit`", "Remove one or the other.");
  }
  if (!unlimited && (unit === undefined || requests === undefined)) {
    report(
      ["rate_limit"],
      "required",
      "must have `requests_per_unit` and `unit`, or `unlimited`",
      "Add what is missing.",
    );
  }
  for (const [i, replaced] of replaces.entries()) {
    if (replaced.name !== name) continue;
    report(["rate_limit", "replaces", i, "name"], "format", "is the name of the same limit", "Remove it.");
  }
}
