import assert from "node:assert/strict";
import { test } from "node:test";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import type { OpenedHold } from "../../../../engine/src/credits/batch.ts";
import { HoldSubjects } from "./hold-subjects.ts";
import type { SubjectRow } from "./record.ts";

const hold = (id: string, more: Partial<OpenedHold> = {}): OpenedHold => ({
  ...{ id, workspaceId: "ws", keyId: "key", apiId: "api", cost: 5, balances: [{ id: "bud_a", period: 2 }] },
  ...{ onExpiry: "release", createdAt: instantAt(1), expiresAt: instantAt(2), subject: null, limits: null },
  ...{ state: "open", charged: 0, lacks: [], settlement: null },
  ...more,
});

function openSubjects() {
  const read: string[] = [];
  const subjects = new HoldSubjects(async (ids) => {
    read.push(...ids);
    const found = { workspace_id: "ws", key_id: "key", api_id: "api", subject: null, limits: null };
    return new Map(
      ids.map((id): [string, SubjectRow] => [id, { ...found, id, balances: id === "hold_damaged" ? "[{" : "[]" }]),
    );
  });
  return { subjects, read };
}

test("holds of this node are found without a read, and only in their workspace", async () => {
  const { subjects, read } = openSubjects();
  subjects.add([hold("hold_own", { subject: JSON.stringify({ identityId: "id_1" }) })]);
  assert.deepEqual(await subjects.find("hold_own", "ws"), {
    ...{ holdId: "hold_own", workspaceId: "ws", keyId: "key", apiId: "api", identityId: "id_1" },
    ...{ balances: ["bud_a"], limits: null },
  });
  assert.deepEqual(read, []);
  assert.equal(await subjects.find("hold_own", "other"), undefined);
  assert.equal(await subjects.find("hold_theirs", "other"), undefined);
  assert.equal((await subjects.find("hold_theirs", "ws"))?.holdId, "hold_theirs");
  assert.deepEqual(read, ["hold_own", "hold_theirs", "hold_theirs"]);
});

test("only the last 10,000 are in memory, and none with a long receipt", async () => {
  const { subjects, read } = openSubjects();
  subjects.add([hold("hold_first"), hold("hold_long", { limits: "x".repeat(501) })]);
  subjects.add(Array.from({ length: 10_000 }, (_, i) => hold(`hold_${i}`)));
  for (const id of ["hold_0", "hold_9999", "hold_first", "hold_long"]) await subjects.find(id, "ws");
  assert.deepEqual(read, ["hold_first", "hold_long"]);
});

test("holds that have ended are read again, and leave room", async () => {
  const { subjects, read } = openSubjects();
  subjects.add(Array.from({ length: 10_000 }, (_, i) => hold(`hold_${i}`)));
  subjects.remove("hold_5");
  subjects.add([hold("hold_last")]);
  for (const id of ["hold_0", "hold_5", "hold_last"]) await subjects.find(id, "ws");
  assert.deepEqual(read, ["hold_5"]);
});

test("a damaged row fails no calls of other holds that share its query", async () => {
  const { subjects } = openSubjects();
  const found = [subjects.find("hold_damaged", "ws"), subjects.find("hold_sound", "ws")];
  found.push(subjects.find("hold_damaged", "other"));
  const [damaged, sound, elsewhere] = await Promise.allSettled(found);
  assert.equal(damaged?.status, "rejected");
  assert.equal(sound?.status === "fulfilled" && sound.value?.holdId, "hold_sound");
  assert.deepEqual(elsewhere, { status: "fulfilled", value: undefined });
});
