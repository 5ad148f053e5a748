/** The alert rules of Prometheus and the dashboard of Grafana. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import { makeFolder, ROOT_KEY, start, startEdge } from "../process.ts";
import { type Exposed, parseExposition } from "../prometheus.ts";
import { sharedRedis } from "../services/redis.ts";
import { needTool, repository, runTool, tools } from "./tools.ts";

interface Rule {
  alert: string;
  expr: string;
  annotations: Record<string, string>;
  labels: { severity: string };
}

interface Panel {
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string; legendFormat: string }[];
}

const read = (path: string) => readFileSync(join(repository, path), "utf8");
const alerts = (parse(read("deploy/prometheus/alerts.yaml")) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  ({ rules }) => rules,
);
const dashboard = JSON.parse(read("deploy/grafana/latchkey.json")) as { panels: Panel[] };
const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));

/** The series of the service in an expression, without those that Prometheus makes. */
function seriesIn(expr: string): string[] {
  return expr.match(/\b(latchkey|process|nodejs)_\w+/g) ?? [];
}

/** The labels of series that have no samples before some work was done. */
const later: Record<string, readonly string[]> = {
  latchkey_auth_failures_total: ["problem"],
  latchkey_retention_lag_seconds: ["table"],
  latchkey_upstream_question_duration_seconds: [],
  nodejs_gc_duration_seconds: ["kind"],
};

/** Series that are there with a cluster of Redis alone. */
const OF_CLUSTER = /^latchkey_redis_(spread|returned|unreturned)_total$/;

/** The names of the labels of a series, without those of its buckets. */
function labelsOf(exposed: Pick<Exposed, "values">, name: string): Set<string> {
  if (later[name]) return new Set(later[name]);
  const samples = ["", "_bucket"].flatMap((suffix) => [...exposed.values(name + suffix).keys()]);
  assert(samples.length > 0, `${name} has no samples.`);
  const labels = samples.flatMap((sample) => [...sample.matchAll(/(\w+)="/g)].map(([, label]) => label!));
  return new Set(labels.filter((label) => label !== "le"));
}

/** The labels that an expression and the text beside it name, besides those of Prometheus and of buckets. */
function namedLabels(expr: string, text: string): string[] {
  const matched = [...expr.matchAll(/[{,]\s*(\w+)\s*[=!]/g)].map(([, label]) => label!);
  const grouped = [...expr.matchAll(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, list]) =>
    list!.split(/\s*,\s*/),
  );
  const shown = [...text.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label]) => label!);
  return [...matched, ...grouped, ...shown].filter((label) => !["job", "instance", "le"].includes(label));
}

/** The rows of the table of metrics in docs/observability.md: names in full, and labels. */
function describedMetrics(): { names: string[]; labels: Set<string> }[] {
  const [, table] = /^## Metrics\n([\s\S]*?)\nWorth an alert/m.exec(read("docs/observability.md"))!;
  return [...table!.matchAll(/^\| (`latchkey_.*?) \|(.*?)\|/gm)].map(([, names, labels]) => {
    let stem = "";
    const full = [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => {
      if (name!.startsWith("_")) return stem + name;
      stem = /^latchkey_[a-z]+/.exec(name!)![0];
      return name!;
    });
    return { names: full, labels: new Set([...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label!)) };
  });
}

describe("alert rules and dashboard", () => {
  /** Of a service and of an edge. */
  let exposed: Pick<Exposed, "families" | "values">;
  before(async () => {
    const server = await start({
      directory: makeFolder({ after }),
      settings: { REDIS_URL: await sharedRedis(), BACKUP_EVERY: "1d" },
    });
    await server.ok("keys.verifyKey", { key: "unknown" });
    const edge = await startEdge(server, ROOT_KEY, { directory: makeFolder({ after }) });
    const [ofServer, ofEdge] = await Promise.all(
      [server, edge].map(async ({ address }) => parseExposition(await (await fetch(`${address}/metrics`)).text())),
    );
    await edge.kill("SIGTERM");
    exposed = {
      families: new Map([...ofEdge!.families, ...ofServer!.families]),
      values: (name) => (ofServer!.values(name).size > 0 ? ofServer! : ofEdge!).values(name),
    };
    await server.kill("SIGTERM");
  });

  it("name labels that their series have", () => {
    const used = [
      ...queries.map(({ title, expr, legendFormat }) => ({ title, expr, text: legendFormat })),
      ...alerts.map(({ alert, expr, annotations }) => ({
        title: alert,
        expr,
        text: Object.values(annotations).join(" "),
      })),
    ];
    for (const { title, expr, text } of used) {
      const labels = seriesIn(expr).map((name) => labelsOf(exposed, name.replace(/_(bucket|sum|count)$/, "")));
      for (const label of namedLabels(expr, text)) {
        assert(
          labels.some((own) => own.has(label)),
          `${title} names the label ${label}, which no series of it has.`,
        );
      }
    }
  });

  it("are explained by a table whose metrics exist, with their labels", () => {
    const rows = describedMetrics();
    assert(rows.length > 30);
    for (const { names, labels } of rows) {
      for (const name of names.filter((one) => !OF_CLUSTER.test(one))) {
        assert(exposed.families.has(name), `docs/observability.md names ${name}, which does not exist.`);
        assert.deepEqual(labelsOf(exposed, name), labels, `docs/observability.md, ${name}`);
      }
    }
  });

  it("name series that the service has, and show each of them", () => {
    const { families } = exposed;
    const used = [...queries, ...alerts.map(({ alert, expr }) => ({ title: alert, expr }))];
    for (const { title, expr } of used) {
      for (const name of seriesIn(expr)) {
        const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ""));
        assert(family, `${title} asks for ${name}, which does not exist.`);
        assert.equal(!families.has(name), family.type === "histogram", `${title} asks for ${name}.`);
      }
    }
    const shown = new Set(queries.flatMap(({ expr }) => seriesIn(expr)).map((name) => name.replace(/_bucket$/, "")));
    const missing = [...families].filter(
      ([name, { help }]) => name.startsWith("latchkey_") && !help.startsWith("Deprecated: ") && !shown.has(name),
    );
    assert.deepEqual(missing, [], "series that no panel shows");
  });

  it("include every series that docs/observability.md calls worth an alert, and the other way round", () => {
    const [, named] = /Worth an alert([\s\S]*?)\n## /.exec(read("docs/observability.md"))!;
    const described = new Set(seriesIn(named!));
    assert.deepEqual(described, new Set(alerts.flatMap(({ expr }) => seriesIn(expr))));
  });

  it("are listed in docs/deploying.md with their severity", () => {
    const described = [...read("docs/deploying.md").matchAll(/^\| (`Latchkey.*) \| (\w+) \|$/gm)].flatMap(
      ([, names, severity]) => [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => `${name} ${severity}`),
    );
    assert.deepEqual(described.sort(), alerts.map(({ alert, labels }) => `${alert} ${labels.severity}`).sort());
  });

  it("place no panel over another", () => {
    const taken = new Map<string, string>();
    for (const { title, gridPos } of dashboard.panels) {
      assert(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.equal(taken.get(`${x} ${y}`), undefined, title);
          taken.set(`${x} ${y}`, title);
        }
      }
    }
  });

  it("are accepted by Prometheus, and each alert is raised by its condition alone", async (t) => {
    const promtool = needTool(t, tools.promtool);
    if (!promtool) return;
    const checked = await runTool(promtool, ["check", "rules", join(repository, "deploy/prometheus/alerts.yaml")]);
    assert.equal(checked.code, 0, checked.output);
    const tested = await runTool(promtool, ["test", "rules", join(repository, "deploy/prometheus/alerts.test.yaml")]);
    assert.equal(tested.code, 0, tested.output);
    const covered = read("deploy/prometheus/alerts.test.yaml");
    for (const { alert } of alerts) assert(covered.includes(alert), `No test raises ${alert}.`);
  });

  it("have queries that Prometheus can parse", async (t) => {
    const promtool = needTool(t, tools.promtool);
    if (!promtool) return;
    const file = join(makeFolder(t), "queries.json");
    const rules = queries.map(({ expr }, i) => ({
      record: `query_${i}`,
      expr: expr.replaceAll("$__rate_interval", "5m").replaceAll(/\$(job|instance)/g, ".*"),
    }));
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: "queries", rules }] }));
    const { code, output } = await runTool(promtool, ["check", "rules", file]);
    assert.equal(code, 0, output);
    assert.match(output, new RegExp(`${queries.length} rules found`));
  });
});
