import type { CheckGroup } from "../../ui/fields/checks.tsx";

const titles: Readonly<Record<string, string>> = {
  key: "Keys",
  keys: "Keys",
  credits: "Credits",
  limit: "Limits",
  leak: "Leaks",
  root_key: "Root keys",
  identity: "Identities",
  role: "Roles",
  permission: "Permissions",
  api: "APIs",
  namespace: "Rate limits",
  override: "Rate limits",
  workspace: "Workspaces",
  webhook: "Webhooks",
};

/** Types of events by what they are about. */
export function groupsOf(types: readonly string[]): CheckGroup[] {
  const byTitle = new Map<string, string[]>();
  for (const type of types) {
    const about = type.split(".")[0]!;
    const title = titles[about] ?? about;
    byTitle.set(title, [...(byTitle.get(title) ?? []), type]);
  }
  return [...byTitle].map(([title, ofTitle]) => ({
    title,
    options: ofTitle.map((type) => ({ value: type, label: type })),
  }));
}
