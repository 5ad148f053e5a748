/**
 * Cost of the counters in memory: `node bench/counters.ts [identifiers] [--shared] [--strict]`, with 10,000 to
 * 10,000,000 identifiers, by default 1,000,000. With `--strict`, the limits are strict, and each identifier is first charged
 * in nine parts of the hour, so that it has all of its slots. Each charge gets new strings, as parsing a request makes them; their cost is
 * measured separately and subtracted in the first figure. The figures are CPU time of the whole process including
 * garbage collection, so they are those of one core on a busy machine too. 10 million identifiers take about half a
 * minute and 0.6 GB.
 */
import { instantAt } from "../engine/src/clock/clock.ts";
import { systemClock } from "../engine/src/clock/system.ts";
import { MemoryCounters } from "../engine/src/limits/memory-counters.ts";
import { MemoryTable, reserveTable, SEGMENT_BYTES } from "../engine/src/limits/memory-table.ts";

const count = Number(process.argv.slice(2).find((argument) => !argument.startsWith("--")) ?? 1_000_000);
if (!(Number.isInteger(count) && count >= 10_000 && count <= 10_000_000)) {
  console.error("The number of identifiers is 10,000 to 10,000,000");
  process.exit(1);
}
const shared = process.argv.includes("--shared");
const mode = process.argv.includes("--strict") ? "strict" : "standard";
const hour = 3_600_000;
let ahead = 0;
const clock = { now: () => instantAt(systemClock.now() + ahead) };

const rssBefore = process.memoryUsage().rss;
const table = new MemoryTable(reserveTable(2 ** 30, shared), 1, [0x12345678, 0x5a5a5a5a]);
const counters = new MemoryCounters(table, clock);

let longestSplitMs = 0;
let firstSplitMs = 0;
const split = table.split.bind(table);
table.split = (high) => {
  const begin = cpuMs();
  const isDone = split(high);
  const length = cpuMs() - begin;
  // The first ones run before the code is compiled.
  if (table.segments.used < 80) firstSplitMs = Math.max(firstSplitMs, length);
  else longestSplitMs = Math.max(longestSplitMs, length);
  return isDone;
};

/** The name of a counter, from a workspace, a namespace and an identifier: a flat string without a cached hash. */
const nameOf = (i: number) => JSON.parse(`"ws_3kTq9vXw2\\u0000rlns_7Hd2\\u0000user_${i}"`) as string;
/** Visits all of 0 to `count` − 1 in an order that a cache cannot predict. */
const shuffled = (i: number) => (i * 7_368_787) % count;

/** CPU time of all threads in milliseconds. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function measure(label: string, calls: number, nameAt: (i: number) => string, limit: number): void {
  let admitted = 0;
  let length = 0;
  const stringsBegin = cpuMs();
  for (let i = 0; i < calls; i++) length += nameAt(i).length;
  const begin = cpuMs();
  for (let i = 0; i < calls; i++) {
    const decision = counters.charge([{ counter: nameAt(i), limit, duration: hour, mode, cost: 1 }]);
    if (decision.outcome === "decided" && decision.allowed) admitted++;
  }
  const end = cpuMs();
  const ns = ((end - begin - (begin - stringsBegin)) / calls) * 1e6;
  const rate = (calls / (end - begin)) * 1e3;
  console.log(
    `${label.padEnd(34)} ${ns.toFixed(0).padStart(5)} ns per charge, ${Math.round(rate).toLocaleString("en").padStart(10)} per second and core with the strings, ${admitted.toLocaleString("en")} admitted${length === 0 ? "!" : ""}`,
  );
}

console.log(
  `${count.toLocaleString("en")} identifiers, ${shared ? "shared" : "unshared"} memory, Node ${process.version}`,
);
measure("new identifiers", count, nameOf, 1000);
for (let part = 1; mode === "strict" && part < 9; part++) {
  // The last of them is an hour and a sixteenth after the first.
  ahead = (part * hour) / 8;
  measure(`again ${ahead / 60_000} minutes later`, count, nameOf, 1000);
}
const { used, max } = table.segments;
console.log(`${used} of ${max} segments, ${((used * SEGMENT_BYTES) / count).toFixed(1)} bytes per identifier`);
console.log(`longest split ${longestSplitMs.toFixed(2)} ms, among the first 16 ${firstSplitMs.toFixed(2)} ms`);
measure("existing identifiers, random order", Math.min(count, 3_000_000), (i) => nameOf(shuffled(i)), 1000);
measure("100,000 identifiers", 2_000_000, (i) => nameOf(i % Math.min(count, 100_000)), 1_000_000);
measure("one identifier", 2_000_000, () => nameOf(7), 1e12);
measure("all denied, random order", Math.min(count, 3_000_000), (i) => nameOf(shuffled(i)), 1);

const scan = cpuMs();
const target = new Uint8Array(SEGMENT_BYTES);
let longestCollectMs = 0;
for (let segment = 0; segment < used; segment++) {
  const begin = cpuMs();
  table.collect(segment, target, 0, clock.now(), "marked");
  longestCollectMs = Math.max(longestCollectMs, cpuMs() - begin);
}
console.log(
  `collecting all counters for the journal ${(cpuMs() - scan).toFixed(0)} ms in steps of at most ${longestCollectMs.toFixed(2)} ms`,
);
console.log(
  `estimate ${table.estimateUsed(clock.now()).toLocaleString("en")}, rejected for lack of memory ${table.rejections}, ` +
    `resident memory grew by ${Math.round((process.memoryUsage().rss - rssBefore) / 2 ** 20)} MiB`,
);
