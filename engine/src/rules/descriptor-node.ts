/** The units of limits of descriptors, in the order of their numbers in the protocol of Envoy, which begin with 1. */
export const descriptorUnits = ["second", "minute", "hour", "day", "month", "year", "week"] as const;

export type DescriptorUnit = (typeof descriptorUnits)[number];

/** Largest number of descriptors in a tree. */
export const DESCRIPTOR_NODES_MAX = 10_000;
/** Largest number of levels of a tree. */
export const DESCRIPTOR_DEPTH_MAX = 16;

/** A descriptor of a tree, as the configuration of envoyproxy/ratelimit writes it. */
export interface DescriptorNode {
  readonly key: string;
  /** Omitted or empty: any value. With `*` at its end: every value that begins with what is before it. */
  readonly value?: string | undefined;
  readonly rate_limit?: DescriptorRateLimit | undefined;
  readonly shadow_mode?: boolean | undefined;
  readonly quota_mode?: boolean | undefined;
  readonly share_threshold?: boolean | undefined;
  readonly detailed_metric?: boolean | undefined;
  readonly value_to_metric?: boolean | undefined;
  readonly descriptors?: readonly DescriptorNode[] | undefined;
}

export interface DescriptorRateLimit {
  readonly requests_per_unit?: number | undefined;
  readonly unit?: DescriptorUnit | undefined;
  readonly unlimited?: boolean | undefined;
  readonly name?: string | undefined;
  readonly replaces?: readonly { readonly name: string }[] | undefined;
}

/** The same tree without members that say nothing, and with the others in one order, so that equal trees have equal texts. */
export function canonicalDescriptors(nodes: readonly DescriptorNode[]): DescriptorNode[] {
  return nodes.map(({ key, value, rate_limit: limit, descriptors = [], ...flags }) => ({
    key,
    ...(value && { value }),
    ...(limit && { rate_limit: canonicalLimit(limit) }),
    ...(flags.shadow_mode && { shadow_mode: true }),
    ...(flags.quota_mode && { quota_mode: true }),
    ...(flags.share_threshold && { share_threshold: true }),
    ...(flags.detailed_metric && { detailed_metric: true }),
    ...(flags.value_to_metric && { value_to_metric: true }),
    ...(descriptors.length > 0 && { descriptors: canonicalDescriptors(descriptors) }),
  }));
}

function canonicalLimit({ unlimited, requests_per_unit, unit, name, replaces = [] }: DescriptorRateLimit) {
  return {
    ...(unlimited ? { unlimited: true } : { requests_per_unit, unit }),
    ...(name && { name }),
    ...(replaces.length > 0 && { replaces: replaces.map((one) => ({ name: one.name })) }),
  };
}
