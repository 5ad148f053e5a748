// Moves the files of the program into rooms (decision 045), and rewrites what imports them.
//
//   node server/build/rooms.mjs groups        lists what there is to move
//   node server/build/rooms.mjs moves GROUP   moves one group; server/build/rooms.json remembers the last one
//   node server/build/rooms.mjs imports       rewrites imports; a second run changes nothing
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";

const S = "server/src/";
const F = "server/src/features/",
  PL = "server/src/platform/",
  E = "engine/src/";
const exact = {
  "crypto/webhook-signature.ts": `${F}webhooks/signature.ts`,
  "rules/webhook-retries.ts": `${F}webhooks/retries.ts`,
  "service/webhooks.ts": `${F}webhooks/delivery.ts`,
  "rules/leak-kit.ts": `${F}leaks/kit.ts`,
  "rules/portal-terms.ts": `${F}portal/terms.ts`,
  "rules/cursor.ts": `${PL}store/cursor.ts`,
  "rules/public-address.ts": `${PL}outbound/public-address.ts`,
  "rules/web-address.ts": `${PL}outbound/web-address.ts`,
  "operations/apis/upstream.ts": `${F}upstreams/record.ts`,
  "operations/keys/upstream-key.ts": `${F}upstreams/key.ts`,
  "operations/keys/upstream-procedures.ts": `${F}upstreams/procedures.ts`,
  "operations/keys/credits.ts": `${F}credits/record.ts`,
  "operations/rootKeys/dashboard-sessions.ts": `${F}dashboard/sessions.ts`,
  "operations/rootKeys/session-procedures.ts": `${F}dashboard/procedures.ts`,
  "http/dashboard/sessions.ts": `${F}dashboard/routes.ts`,
  "service/move/moving.ts": `${PL}store/move/moving.ts`,
  "http/forward-auth.ts": `${F}keys/forward-auth.ts`,
  "http/leaks.ts": `${F}leaks/routes.ts`,
  "service/event-sweep.ts": `${F}events/sweep.ts`,
  "store/keys/apis.ts": `${F}apis/statements.ts`,
  "store/keys/leaks.ts": `${F}leaks/statements.ts`,
  "store/administration/audit.ts": `${PL}store/audit/audit.ts`,
  "operations/audit/changed-values.ts": `${PL}vocabulary/changed-values.ts`,
  "store/administration/audit-reader.ts": `${F}audit/statements/reader.ts`,
  "store/administration/audit-retention.ts": `${F}audit/statements/retention.ts`,
  "store/events/events.ts": `${PL}store/events/events.ts`,
  "store/events/types.ts": `${PL}store/events/types.ts`,
  "store/events/keys.ts": `${PL}store/events/keys.ts`,
  "store/administration/quotas.ts": `${PL}store/quotas/quotas.ts`,
  "store/administration/workspace-usage.ts": `${PL}store/quotas/workspace-usage.ts`,
  "store/administration/workspace-bytes.ts": `${PL}store/quotas/workspace-bytes.ts`,
  "store/administration/idempotency-count.ts": `${PL}store/quotas/idempotency-count.ts`,
  "store/administration/access-lock.ts": `${PL}store/access/access-lock.ts`,
  "store/administration/root-key-lookup.ts": `${PL}store/access/root-key-lookup.ts`,
  "store/administration/root-key-usage.ts": `${PL}store/access/root-key-usage.ts`,
  "store/administration/token-key.ts": `${PL}store/access/token-key.ts`,
  "store/administration/root-keys.ts": `${F}rootKeys/statements.ts`,
  "store/administration/sessions.ts": `${F}dashboard/statements.ts`,
  "store/administration/workspaces.ts": `${F}workspaces/statements.ts`,
  "store/administration/procedures.ts": `${F}workspaces/procedures.ts`,
  "store/identities/identities.ts": `${F}identities/statements.ts`,
  "store/portal/portal-sessions.ts": `${F}portal/statements.ts`,
  "store/credits/balances.ts": `${F}credits/statements.ts`,
  "store/credits/procedures.ts": `${F}credits/procedures.ts`,
  "store/keys/procedures.ts": `${F}keys/procedures.ts`,
  "store/events/procedures.ts": `${F}events/procedures.ts`,
};
const prefixes = [
  ["clock/", `${E}clock/`],
  ["random/", `${E}random/`],
  ["crypto/", `${E}crypto/`],
  ["errors/", `${E}errors/`],
  ["rules/", `${E}rules/`],
  ["verification/", `${E}verification/`],
  ["directory/", `${E}directory/`],
  ["limits/", `${E}limits/`],
  ["credits/", `${E}credits/`],
  ["operations/index.ts", `${S}service/operations.ts`],
  ["operations/document.ts", `${S}service/document.ts`],
  ["operations/columns.ts", `${PL}vocabulary/columns.ts`],
  ["operations/examples.ts", `${PL}vocabulary/examples.ts`],
  ["operations/paging.ts", `${PL}vocabulary/paging.ts`],
  ["operations/schema.ts", `${PL}vocabulary/schema.ts`],
  ["operations/", F],
  ["analytics/", `${F}analytics/`],
  ["leaks/", `${F}leaks/`],
  ["upstreams/", `${F}upstreams/`],
  ["webhooks/", `${F}webhooks/`],
  ["http/dashboard/", `${F}dashboard/`],
  ["http/portal/", `${F}portal/`],
  ["http/", `${PL}http/`],
  ["rpc/", `${PL}rpc/`],
  ["store/webhooks/", `${F}webhooks/statements/`],
  ["store/ratelimits/", `${F}ratelimits/statements/`],
  ["store/permissions/", `${F}permissions/statements/`],
  ["store/keys/", `${F}keys/statements/`],
  ["store/events/", `${F}events/statements/`],
  ["store/", `${PL}store/`],
  ["redis/", `${PL}redis/`],
  ["outbound/", `${PL}outbound/`],
  ["vault/", `${PL}vault/`],
  ["service/backup/", `${S}backup/`],
  ["service/move/", `${S}move/`],
  ["config/", `${PL}config/`],
  ["service/held-lease.ts", `${PL}store/held-lease.ts`],
  ["service/leased-work.ts", `${PL}store/leased-work.ts`],
];
function place(f) {
  if (!f.startsWith(S)) return f;
  const r = f.slice(S.length);
  if (exact[r]) return exact[r];
  const base = r.replace(/(\.slow)?\.test\.ts$/, ".ts");
  if (base !== r && exact[base]) return exact[base].replace(/\.ts$/, r.slice(base.length - 3));
  for (const [a, b] of prefixes) if (r.startsWith(a)) return b + r.slice(a.length);
  return f;
}
const room = (p) =>
  p.startsWith("engine/")
    ? "engine"
    : p.startsWith("cli/")
      ? "cli"
      : p.startsWith(PL)
        ? "platform"
        : p.startsWith(F)
          ? `features/${p.split("/")[3]}`
          : p.startsWith(S)
            ? p.split("/")[2]
            : p.split("/")[0];

const git = (...args) => execFileSync("git", args, { encoding: "utf8", maxBuffer: 1 << 28 });
const tracked = () => git("ls-files").split("\n").filter(Boolean);
const LAST = "server/build/rooms.json";
/** The last move whose imports are not rewritten yet: new path to old path. */
const last = new Map(existsSync(LAST) ? JSON.parse(readFileSync(LAST, "utf8")) : []);
const [mode, group] = process.argv.slice(2);

if (mode === "groups") {
  const moving = tracked().filter((path) => place(path) !== path);
  for (const [name, paths] of Map.groupBy(moving, (path) => room(place(path)))) console.log(name, paths.length);
}

if (mode === "moves") {
  const moving = tracked().filter((path) => place(path) !== path && room(place(path)) === group);
  for (const path of moving) {
    const to = place(path);
    mkdirSync(posix.dirname(to), { recursive: true });
    git("mv", path, to);
  }
  writeFileSync(LAST, JSON.stringify(moving.map((path) => [place(path), path])));
  console.log(`${moving.length} files moved`);
}

if (mode === "imports") {
  const movedTo = new Map([...last].map(([to, from]) => [from, to]));
  const rewritten = tracked().filter((path) => {
    if (!/\.(ts|tsx|js|mjs)$/.test(path) || !existsSync(path)) return false;
    const text = readFileSync(path, "utf8");
    const before = posix.dirname(last.get(path) ?? path);
    const after = text.replace(
      /((?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*)"(\.{1,2}\/[^"]+)"/g,
      (whole, lead, specifier) => {
        if (specifier.endsWith("/")) return whole;
        const target = posix.join(before, specifier);
        // A file that a build writes, such as one of the bundle, is where its name says.
        if (!movedTo.has(target) && !existsSync(target)) return whole;
        const relative = posix.relative(posix.dirname(path), movedTo.get(target) ?? target);
        return `${lead}"${relative.startsWith(".") ? relative : `./${relative}`}"`;
      },
    );
    if (after !== text) writeFileSync(path, after);
    return after !== text;
  });
  writeFileSync(LAST, "[]");
  console.log(`${rewritten.length} files rewritten`);
}
