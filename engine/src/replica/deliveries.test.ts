import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Deliveries } from "./deliveries.ts";
import { rejectAnswer } from "./home.ts";
import type { CountCell, CountReport, ReportTaker } from "./report.ts";

const MINUTE = 1_768_478_400_000;
const cell = (key: string, count = 1): CountCell => [MINUTE, "api_1", key, null, "", "VALID", count, 0];
const reportOf = (sequence: number, ...verifications: CountCell[]): CountReport => ({
  recorder: "edge_1",
  sequence,
  verifications,
  uses: [],
});

/** A home that fails at reports with some keys, and counts the others. */
function open({ status }: { status: number | undefined } = { status: 500 }) {
  const home = { isAway: false, bad: new Set(["bad"]), asked: 0 };
  const last = new Map<string, number>();
  const counted = new Map<string, number>();
  const losses: { verifications: number; message: string }[] = [];
  const taker: ReportTaker = {
    async report({ recorder, sequence, verifications, uses, rootKeyUses = [] }) {
      home.asked++;
      const keys = [
        ...verifications.map(([, , keyId]) => keyId),
        ...uses.map(({ keyId }) => keyId),
        ...rootKeyUses.map(({ rootKeyId }) => rootKeyId),
      ];
      if (home.isAway || keys.some((key) => key !== null && home.bad.has(key))) {
        rejectAnswer({ operation: "replica.report", status, detail: "Home answered with a failure" });
      }
      if (sequence <= (last.get(recorder) ?? 0)) return {};
      last.set(recorder, sequence);
      if (keys.includes("erased")) return { leftOut: 1 };
      for (const [, , keyId, , , , count] of verifications) counted.set(keyId!, (counted.get(keyId!) ?? 0) + count);
      for (const key of [...uses.map(({ keyId }) => keyId), ...rootKeyUses.map(({ rootKeyId }) => rootKeyId)]) {
        counted.set(key, (counted.get(key) ?? 0) + 1);
      }
      return {};
    },
  };
  const restart = () =>
    new Deliveries(taker, (verifications, { message }) => void losses.push({ verifications, message }));
  const deliveries = restart();
  /** Sends reports as their owners do: in their order, past those that are divided. Returns those that are left. */
  const attempt = async (reports: readonly CountReport[]) => {
    const left: CountReport[] = [];
    for (const [i, report] of reports.entries()) {
      try {
        await deliveries.deliver(report);
      } catch {
        left.push(report);
        if (!deliveries.isDivided(report)) return [...left, ...reports.slice(i + 1)];
      }
    }
    return left;
  };
  const deliverAll = async (reports: readonly CountReport[], attempts: number) => {
    let left = [...reports];
    for (let i = 0; i < attempts && left.length > 0; i++) left = await attempt(left);
    return left;
  };
  return { home, counted, losses, deliverAll, deliveries, restart };
}

describe("deliveries of reports (rule 180)", () => {
  for (const status of [500, 501, 520, 302, 200]) {
    it(`lose the one count at which home fails with ${status}, and no other`, async () => {
      const { home, counted, losses, deliverAll } = open({ status });
      const cells = Array.from({ length: 1_000 }, (_, i) => cell(i === 700 ? "bad" : `key_${i}`, i === 700 ? 3 : 1));
      assert.deepEqual(await deliverAll([reportOf(1, ...cells), reportOf(2, cell("key_0"))], 60), []);
      assert.equal(losses.length, 1);
      assert.equal(losses[0]?.verifications, 3);
      assert.match(losses[0]?.message ?? "", /failed 10 times at the counts of bad in the minute of 2026-01-15T12:00/);
      assert.equal(counted.size, 999);
      assert.deepEqual([...new Set([...counted].map(([key, n]) => (key === "key_0" ? n - 1 : n)))], [1]);
      assert.ok(home.asked < 100, `${home.asked} questions`);
    });
  }

  it("do not keep others waiting behind a single count at which home fails", async () => {
    const { counted, losses, deliverAll } = open();
    const left = await deliverAll(
      [reportOf(1, cell("bad")), reportOf(2, cell("key_1")), reportOf(3, cell("key_2"))],
      21,
    );
    assert.deepEqual(left, []);
    assert.deepEqual(
      [...counted],
      [
        ["key_1", 1],
        ["key_2", 1],
      ],
    );
    assert.deepEqual(
      losses.map(({ verifications }) => verifications),
      [1],
    );
  });

  it("go on at once where each report has the same fault", async () => {
    const { counted, losses, deliverAll } = open();
    const reports = Array.from({ length: 200 }, (_, i) => reportOf(i + 1, cell("bad"), cell(`key_${i}`)));
    assert.deepEqual(await deliverAll(reports, 150), []);
    assert.equal(counted.size, 200);
    assert.equal(losses.length, 200);
  });

  for (const status of [undefined, 401, 404, 429, 502, 503, 504]) {
    it(`lose nothing while home answers with ${status ?? "nothing"}, however long`, async () => {
      const { home, counted, losses, deliverAll } = open({ status });
      home.isAway = true;
      home.bad.clear();
      const reports = [reportOf(1, cell("key_1"), cell("key_2")), reportOf(2, cell("key_3"))];
      assert.deepEqual(await deliverAll(reports, 5_000), reports);
      assert.equal(home.asked, 5_000, "one question at a time");
      home.isAway = false;
      assert.deepEqual(await deliverAll(reports, 1), []);
      assert.equal(counted.size, 3);
      assert.deepEqual(losses, []);
    });
  }

  it("lose nothing for an hour while home fails at all reports, and ask little", async () => {
    const { home, counted, losses, deliverAll } = open();
    home.isAway = true;
    home.bad.clear();
    const cells = Array.from({ length: 100 }, (_, i) => cell(`key_${i}`));
    const reports = Array.from({ length: 30 }, (_, i) => reportOf(i + 1, ...cells));
    await deliverAll(reports, 3_000);
    assert.ok(home.asked <= 6 * 3_000, `${home.asked} questions`);
    assert.deepEqual(losses, []);
    home.isAway = false;
    assert.deepEqual(await deliverAll(reports, 100), []);
    assert.deepEqual([counted.size, ...new Set(counted.values())], [100, 30]);
  });

  it("do not take it for a fault of a count that home takes uses, or leaves counts out", async () => {
    const { home, counted, losses, deliverAll, deliveries } = open();
    home.bad = new Set(["key_1", "key_2"]);
    const uses = [{ keyId: "key_3", at: 1 }];
    const report = { ...reportOf(1, cell("key_1"), cell("key_2")), uses };
    for (let i = 0; i < 400; i++) {
      await deliverAll([report, reportOf(i + 2, cell("erased"))], 1);
      await deliveries.deliver({ recorder: "edge_1_uses", sequence: i, verifications: [], uses });
    }
    assert.deepEqual(
      losses.filter(({ message }) => message.includes("failed")),
      [],
    );
    home.bad.clear();
    assert.deepEqual(await deliverAll([report], 20), []);
    assert.deepEqual([counted.get("key_1"), counted.get("key_2")], [1, 1]);
  });

  it("take uses of other keys, and forget that at which home fails", async () => {
    const { counted, deliveries } = open();
    let taken = false;
    for (let i = 1; i <= 12 && !taken; i++) {
      const uses = ["key_1", "bad", "key_2"].map((keyId) => ({ keyId, at: i }));
      const rootKeyUses = [{ rootKeyId: "root_1", at: i }];
      const report = { recorder: "edge_1_uses", sequence: i, verifications: [], uses, rootKeyUses };
      taken = await deliveries.deliver(report).then(
        () => true,
        () => false,
      );
    }
    assert.equal(taken, true);
    assert.deepEqual([...counted.keys()].sort(), ["key_1", "key_2", "root_1"]);
  });

  it("count each part once, also if the process ends in between and begins again", async () => {
    const { counted, losses, restart } = open();
    const report = reportOf(1, ...["key_1", "bad", "key_2", "key_3"].map((key) => cell(key)));
    // The first process ends in the middle of the parts.
    for (const attempts of [11, 30]) {
      const deliveries = restart();
      let isTaken = false;
      for (let i = 0; i < attempts && !isTaken; i++) {
        isTaken = await deliveries.deliver(report).then(
          () => true,
          () => false,
        );
      }
    }
    assert.deepEqual(Object.fromEntries(counted), { key_1: 1, key_2: 1, key_3: 1 });
    assert.equal(losses.length, 1);
  });
});
