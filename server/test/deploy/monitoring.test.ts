/** The alert rules of Prometheus and the dashboard of Grafana. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { makeFolder, start } from "../process.ts";
import { parseExposition } from "../prometheus.ts";
import { sharedRedis } from "../services/redis.ts";
import { needTool, repository, runTool, tools } from "./tools.ts";

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
}

interface Panel {
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}

const read = (path: string) => readFileSync(join(repository, path), "utf8");
const alerts = (parse(read("deploy/prometheus/alerts.yaml")) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  ({ rules }) => rules,
);
const dashboard = JSON.parse(read("deploy/grafana/latchkey.json")) as { panels: Panel[] };
const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));

/** The series of the service in an expression, without those that Prometheus makes. */
function seriesIn(expr: string): string[] {
  return expr.match(/\b(latchkey|process|nodejs)_\w+/g) ?? [];
}

describe("alert rules and dashboard", () => {
  it("name series that the service has, and show each of them", async (t) => {
    const server = await start({
      directory: makeFolder(t),
      settings: { REDIS_URL: await sharedRedis(), BACKUP_EVERY: "1d" },
    });
    const { families } = parseExposition(await (await fetch(`${server.address}/metrics`)).text());
    await server.kill("SIGTERM");

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
