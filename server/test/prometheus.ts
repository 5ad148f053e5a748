import assert from "node:assert/strict";

/** A parsed scrape. */
export interface Exposed {
  families: ReadonlyMap<string, { type: string; help: string }>;
  /** The samples of this name by their labels as written: `kind="keys"`. */
  values(name: string): Map<string, number>;
  /** One sample. Throws if it is missing. */
  value(name: string, labels?: string): number;
}

const FAMILY = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^}]*)\})? (\+Inf|-Inf|NaN|Nan|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"$/;

/**
 * Parses Prometheus' text format 0.0.4, more strictly than a scraper: each family in one block, HELP and TYPE first, no
 * duplicate sample, no negative counter, and histograms whose buckets cumulate up to their count.
 *
 * @throws {AssertionError}
 */
export function parseExposition(text: string): Exposed {
  assert(text.endsWith("\n"), "The last line has no end.");
  const families = new Map<string, { type: string; help: string }>();
  const samples = new Map<string, Map<string, number>>();
  let current = "";
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, keyword, family, rest] = FAMILY.exec(line) ?? [];
    if (keyword === "HELP") {
      assert(!families.has(family!), `${family} is there twice.`);
      current = family!;
      families.set(current, { type: "", help: rest! });
      continue;
    }
    const known = families.get(current);
    assert(known, `A line before any family: ${line}`);
    if (keyword === "TYPE") {
      assert.equal(family, current, line);
      assert.equal(known.type, "", line);
      assert.match(rest!, /^(counter|gauge|histogram|summary)$/, line);
      known.type = rest!;
      continue;
    }
    const [, name, labels = "", value] = SAMPLE.exec(line) ?? [];
    assert(name !== undefined, `This is not a sample: ${line}`);
    for (const label of labels === "" ? [] : labels.split(",")) assert.match(label, LABEL, line);
    const names =
      known.type === "histogram" ? ["_bucket", "_sum", "_count"].map((suffix) => current + suffix) : [current];
    assert(names.includes(name), `${name} is in the family ${current}.`);
    const series = samples.get(name) ?? new Map<string, number>();
    samples.set(name, series);
    assert(!series.has(labels), `There twice: ${line}`);
    series.set(labels, Number(value!.replace("Inf", "Infinity")));
  }

  for (const [name, { type }] of families) {
    assert.notEqual(type, "", `${name} has no type.`);
    if (type === "counter") for (const value of samples.get(name)?.values() ?? []) assert(value >= 0, name);
    if (type === "histogram") examineHistogram(name, samples);
  }
  const values = (name: string) => new Map(samples.get(name));
  return {
    families,
    values,
    value(name, labels = "") {
      const value = samples.get(name)?.get(labels);
      assert(value !== undefined, `There is no ${name}{${labels}}.`);
      return value;
    },
  };
}

function examineHistogram(name: string, samples: ReadonlyMap<string, ReadonlyMap<string, number>>): void {
  const series = new Map<string, [bound: number, count: number][]>();
  for (const [labels, count] of samples.get(`${name}_bucket`) ?? []) {
    const all = labels.split(",");
    const bound = all.find((label) => label.startsWith("le="));
    assert(bound !== undefined, `${name}_bucket{${labels}} has no bound.`);
    const rest = all.filter((label) => label !== bound).join(",");
    const buckets = series.get(rest) ?? [];
    buckets.push([Number(bound.slice('le="'.length, -1).replace("Inf", "Infinity")), count]);
    series.set(rest, buckets);
  }
  for (const suffix of ["_sum", "_count"]) {
    assert.deepEqual([...(samples.get(name + suffix)?.keys() ?? [])].sort(), [...series.keys()].sort(), name + suffix);
  }
  for (const [labels, buckets] of series) {
    const at = `${name}{${labels}}`;
    for (const [i, [bound, count]] of buckets.entries()) {
      const [bound0, count0] = buckets[i - 1] ?? [Number.NEGATIVE_INFINITY, 0];
      assert(bound > bound0 && count >= count0, `${at}: the bucket of ${bound} holds ${count} after ${count0}.`);
    }
    assert.equal(buckets.at(-1)![0], Number.POSITIVE_INFINITY, at);
    assert.equal(buckets.at(-1)![1], samples.get(`${name}_count`)!.get(labels), at);
    assert(samples.get(`${name}_sum`)!.get(labels)! >= 0, at);
  }
}
