import { canonicalDescriptors, type DescriptorNode } from "../../../engine/src/rules/descriptor-node.ts";

/** The tree of descriptors of a namespace, as `ratelimits.setDescriptors` takes it. */
export interface Tree {
  readonly descriptors: readonly DescriptorNode[];
  readonly atomic: boolean;
  readonly metadata: boolean;
}

/** The same in a document or an answer, which the service has checked. */
interface Described {
  readonly descriptors?: readonly object[] | undefined;
  readonly atomic?: boolean | undefined;
  readonly metadata?: boolean | undefined;
}

/** The changed descriptors that are listed. */
const LISTED_MAX = 20;

export function treeOf({ descriptors = [], atomic = false, metadata = false }: Described): Tree {
  return { descriptors: canonicalDescriptors(descriptors as readonly DescriptorNode[]), atomic, metadata };
}

/** The members of a namespace in a document that have a value. */
export function describedTree({ descriptors = [], atomic, metadata }: Described): Described {
  return descriptors.length === 0 ? {} : { descriptors, ...(atomic && { atomic }), ...(metadata && { metadata }) };
}

/** What differs, a line for each descriptor that is added with `+` and for each that is removed with `-`; empty: nothing. */
export function treeChanges(next: Tree, former: Tree): string[] {
  const [wanted, found] = [linesOf(next.descriptors), linesOf(former.descriptors)];
  const [wantedSet, foundSet] = [new Set(wanted), new Set(found)];
  const lines = [
    ...wanted.filter((line) => !foundSet.has(line)).map((line) => `+${line}`),
    ...found.filter((line) => !wantedSet.has(line)).map((line) => `-${line}`),
  ];
  const isReordered = lines.length === 0 && JSON.stringify(next.descriptors) !== JSON.stringify(former.descriptors);
  const rest = lines.length - LISTED_MAX;
  return [
    ...lines.slice(0, LISTED_MAX),
    ...(rest > 0 ? [`and ${rest} more`] : []),
    ...(isReordered ? ["another order"] : []),
    ...(["atomic", "metadata"] as const)
      .filter((member) => next[member] !== former[member])
      .map((member) => `${member}: ${former[member]} → ${next[member]}`),
  ];
}

/** A line for each descriptor: its path, and what it has besides the next level. */
function linesOf(nodes: readonly DescriptorNode[], path = ""): string[] {
  return nodes.flatMap(({ key, value, descriptors = [], ...rest }) => {
    const own = path + (value === undefined ? key : `${key}=${value}`);
    return [`${own} ${JSON.stringify(rest)}`, ...linesOf(descriptors, `${own} / `)];
  });
}
