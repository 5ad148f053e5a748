import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { commonProblems, type ProblemCode } from "../src/platform/rpc/problems.ts";
import { type EventType, eventTypeNames } from "../src/platform/store/events/types.ts";
import { operations, replicaOperations } from "../src/service/operations.ts";

/** The outcome of a reply: `200` or the code of a problem. */
export type Outcome = "200" | ProblemCode;

/** Stands for the operation if a reply belongs to none, such as that of an unknown route. */
export const NO_OPERATION = "-";

/** Problems of requests that reach no operation, in addition to the common ones. */
export const routeProblems = [
  "route_not_found",
  "method_not_allowed",
  "expectation_failed",
  "request_headers_too_large",
  "cross_origin_request",
  "misdirected_request",
] as const satisfies readonly ProblemCode[];

const recorded = new Set<string>();

/** Records that a test observed this outcome of this operation, in a file of this process, for the check at the end. */
export function observe(operation: string, outcome: Outcome): void {
  record(`${operation} ${outcome}`);
}

/** Records that a service under test wrote an event of this type. */
export function observeEvent(type: EventType): void {
  record(`event ${type}`);
}

function record(line: string): void {
  const folder = process.env.LATCHKEY_TEST_OBSERVATIONS;
  if (!folder || recorded.has(line)) return;
  recorded.add(line);
  appendFileSync(join(folder, String(process.pid)), `${line}\n`);
}

/** All lines that the processes of this run recorded. */
export function readObservations(folder: string): Set<string> {
  return new Set(readdirSync(folder).flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n")));
}

/** The operations, their declared problems, the common problems and the types of events that `seen` lacks. */
export function unobserved(seen: ReadonlySet<string>): string[] {
  const outcomes = new Set([...seen].map((line) => line.split(" ")[1]));
  return [
    ...[...operations, ...replicaOperations]
      .flatMap(({ name, declaration }) =>
        ["200", ...(declaration.problems as readonly string[])].map((outcome) => `${name} ${outcome}`),
      )
      .filter((line) => !seen.has(line)),
    ...[...commonProblems, ...routeProblems].filter((code) => !outcomes.has(code)).map((code) => `any ${code}`),
    ...eventTypeNames.map((type) => `event ${type}`).filter((line) => !seen.has(line)),
  ];
}
