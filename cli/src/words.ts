import type { ExplainLimitOutput, ExplainVerificationOutput } from "../../sdk/src/index.ts";
import { printable } from "./printable.ts";
import { iso, length } from "./times.ts";

/** The answers of these operations are printed in words. The first line is the decision. */
export const inWords: Readonly<Record<string, (data: never) => string[]>> = {
  "keys.explainVerification": verificationInWords,
  "ratelimits.explainLimit": limitInWords,
};

const marks: Readonly<Record<string, string>> = { passed: "ok", decided: "NO", notReached: "--" };

const uses: Readonly<Record<string, string>> = {
  charged: "charged",
  checked: "checked without a charge, because the call names other limits",
  replaced: "replaced by the limit that the call gives",
  unused: "not used: the call does not name it",
};

function verificationInWords(explained: ExplainVerificationOutput): string[] {
  const { code, at, steps, key, record, permissions, concurrency = [], ratelimits = [], credits } = explained;
  const decision = steps.find(({ result }) => result === "decided")?.detail ?? "Every check passed.";
  const lines = [`${printable(code)}: ${printable(decision)}`, ""];
  for (const { step, result, detail } of steps) {
    lines.push(`  ${marks[result] ?? printable(result)}  ${printable(step).padEnd(11)}  ${printable(detail)}`);
  }
  if (permissions && permissions.count > 0) lines.push("", ...permissionLines(permissions));
  if (concurrency.length > 0) lines.push("", "Calls at once:");
  for (const { name, limit, from, inUse } of concurrency) {
    lines.push(`  ${printable(name)}: ${count(inUse)} of ${count(limit)} running, from the ${printable(from)}`);
  }
  if (ratelimits.length > 0) lines.push("", "Limits:");
  for (const { name, limit, duration, mode, from, use, cost, used, window } of ratelimits) {
    const price = cost === undefined ? "" : `, costs ${count(cost)}`;
    lines.push(
      `  ${printable(name)}: ${count(used)} of ${count(limit)} in ${length(duration)} used, ${mode === "strict" ? "strict, more is free" : "window ends"} at ${iso(window.endAt)}`,
      `    from the ${printable(from)}${price}, ${uses[use] ?? printable(use)}`,
    );
  }
  if (credits) {
    const { remaining, cost, refill } = credits;
    const rise = refill?.rollover === undefined ? "set to" : "raised by";
    const next = refill ? `, ${rise} ${count(refill.amount)} at ${iso(refill.nextAt)}` : "";
    lines.push("", `Credits: ${count(remaining)} left, the call costs ${count(cost)}${next}`);
  }
  if (key?.identity) lines.push("", `Identity: ${printable(key.identity.externalId)} (${printable(key.identity.id)})`);
  if (record) {
    const age = Math.max(0, at - record.currentAt);
    lines.push("", `The record of the key is from the ${printable(record.source)}, ${age} ms old at most.`);
  }
  return lines;
}

function permissionLines({
  query,
  effective,
  count: all,
}: NonNullable<ExplainVerificationOutput["permissions"]>): string[] {
  const lines: string[] = [];
  for (const { text, satisfied } of query?.parts ?? []) lines.push(`  ${satisfied ? "ok" : "NO"}  ${printable(text)}`);
  for (const { slug, grantedBy } of query?.slugs ?? []) {
    lines.push(`      ${printable(slug)}: ${grantedBy === undefined ? "not granted" : `by ${printable(grantedBy)}`}`);
  }
  if (lines.length > 0) lines.unshift("Parts of the permission query:");
  lines.push(
    all > effective.length ? `Permissions, the first ${count(effective.length)} of ${count(all)}:` : "Permissions:",
  );
  for (const { slug, direct, roles } of effective) {
    const sources = [...(direct ? ["direct"] : []), ...roles.map((role) => `role ${printable(role)}`)];
    lines.push(`  ${printable(slug)}: ${sources.join(", ") || "no longer there"}`);
  }
  return lines;
}

function limitInWords({ success, detail, duration, mode, retryAfter, window, others }: ExplainLimitOutput): string[] {
  const wait =
    retryAfter === undefined
      ? "It never passes with this cost."
      : `It passes in ${length(retryAfter)} without other calls.`;
  return [
    `${success ? "PASSES" : "DENIED"}: ${printable(detail)}${success ? "" : ` ${wait}`}`,
    mode === "strict"
      ? `  It is strict: no ${length(duration)} have more. More is free at ${iso(window.endAt)}.`
      : `  The window of ${length(duration)} ends at ${iso(window.endAt)}.`,
    ...others.map(
      (other) => `  Also matches: ${printable(other.identifier)}, ${count(other.limit)} in ${length(other.duration)}`,
    ),
  ];
}

function count(number: number): string {
  return number.toLocaleString("en");
}
