/**
 * Adds operations, their services, their quota and their sessions from this folder alone: nothing in `src/` knows of the
 * library.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import type { Charge, ChargeResult } from "../../../engine/src/limits/counters.ts";
import { Limiter } from "../../../engine/src/limits/limiter.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { CallQueues } from "../../src/platform/rpc/call-queues.ts";
import { operationProcedures } from "../../src/platform/rpc/execute.ts";
import { FailedAuthentications } from "../../src/platform/rpc/failed-authentications.ts";
import type { Operation } from "../../src/platform/rpc/operation.ts";
import { Principal } from "../../src/platform/rpc/principal.ts";
import { quotaCounts, Rpc, type RpcOptions } from "../../src/platform/rpc/server.ts";
import { BYTES_MAX, defaultMaxima } from "../../src/platform/store/quotas/quotas.ts";
import { openSqliteStoreHere } from "../../src/platform/store/sqlite/store-here.ts";
import { openProcedures } from "../../src/service/procedures.ts";
import { borrowBook } from "./borrowBook.ts";
import { countBooks } from "./countBooks.ts";
import { LIBRARY, type LibraryServices } from "./services.ts";

const BOOKS_PER_MINUTE = 2;
const DAY = 86_400_000;

describe("an operation of a folder of its own", () => {
  it("answers in its second step, with its services", async (t) => {
    const { call } = await openLibrary(t);
    await call(borrowBook, { reader: "ada" });
    assert.deepEqual(await call(countBooks, { reader: "ada" }), { status: 200, data: { reader: "ada", books: 7 } });
    assert.equal((await call(countBooks, { reader: "nobody" })).status, 404);
  });

  it("has a quota", async (t) => {
    const { call } = await openLibrary(t);
    for (let book = 0; book < BOOKS_PER_MINUTE; book++) {
      assert.equal((await call(borrowBook, { reader: "ada" })).status, 200);
    }
    const { status, detail } = await call(borrowBook, { reader: "ada" });
    assert.deepEqual([status, detail], [429, "A reader can borrow 2 books per minute."]);
    assert.equal((await call(countBooks, { reader: "ada" })).status, 200);
  });

  it("is called by its sessions only", async (t) => {
    const { call } = await openLibrary(t, { audience: undefined });
    assert.equal((await call(countBooks, { reader: "ada" })).status, 403);
  });
});

async function openLibrary(t: TestContext, { audience }: { audience: string | undefined } = { audience: LIBRARY }) {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-library-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const clock = new SimulatedClock(1_768_478_400_000);
  const random = seededRandom(1);
  const limits = { maxima: defaultMaxima, bytesMax: BYTES_MAX, retention: { audit: 400 * DAY, events: 30 * DAY } };
  const operations: readonly Operation[] = [countBooks, borrowBook];
  const ofLibrary = operationProcedures(operations, {
    random,
    limits,
    publicUrl: "",
    services: {},
    secrets: undefined as never,
    vault: { isOpen: false } as never,
    // The library trusts its own sessions.
    sessions: { [LIBRARY]: async (_sql, caller) => caller },
  });
  const ofProgram = openProcedures({ vault: { kind: "none" } });
  const store = openSqliteStoreHere(join(folder, "latchkey.db"), {
    ...ofProgram,
    reading: { ...ofProgram.reading, ...ofLibrary.reading },
    writing: { ...ofProgram.writing, ...ofLibrary.writing },
  });
  t.after(() => store.close());
  const { workspaceId } = await store.transact("prepare", { now: clock.now(), rootKey: undefined });
  const grants = ["identities.*.read_identity", "identities.*.create_identity"];
  const session = { kind: LIBRARY, id: "session_1", ...(audience !== undefined && { audience }) };
  const limiter = new Limiter(countersOf(clock), "closed", clock);
  const services: LibraryServices = { limiter, shelf: { countBooks: async () => 7 }, booksPerMinute: BOOKS_PER_MINUTE };
  const rpc = new Rpc({
    clock,
    random,
    store,
    limiter,
    services,
    queues: new CallQueues(),
    publicUrl: "",
    calls: null,
    defaultWorkspaceId: workspaceId,
    verifyAuth: "optional",
    idempotencyRecordsMax: 1_000,
    quotas: quotaCounts(clock, store, defaultMaxima),
    failedAuthentications: new FailedAuthentications(),
    authenticator: undefined as never,
    directories: { generations: { bump() {} }, changes: { recordOwn() {} } } as unknown as RpcOptions["directories"],
    onFailure(error) {
      throw error;
    },
  });
  const authenticate = async () => new Principal({ rootKeyId: "rk_1", workspaceId, grants, session });
  return {
    async call(operation: Operation, input: object) {
      const { status, body } = await rpc.call(operation, {
        path: `/library/${operation.name}`,
        authentication: { authenticate },
        credentials: { authorization: undefined },
        address: "127.0.0.1",
        contentType: "application/json",
        contentEncoding: undefined,
        idempotencyKey: undefined,
        body: JSON.stringify(input),
      });
      const { data, error } = JSON.parse(body);
      return status === 200 ? { status, data } : { status, detail: error.detail };
    },
  };
}

/** Counters without windows. */
function countersOf(clock: SimulatedClock) {
  const used = new Map<string, number>();
  const charge = (charges: readonly Charge[]): ChargeResult => {
    const { counter, limit, cost } = charges[0]!;
    const before = used.get(counter) ?? 0;
    const allowed = before + cost <= limit;
    if (allowed) used.set(counter, before + cost);
    const at = clock.now();
    const retryAfter = allowed ? 0 : 60_000;
    return {
      outcome: "decided",
      at,
      allowed,
      retryAfter,
      limits: [{ allowed, remaining: limit - before, reset: at + 60_000, retryAfter }],
    };
  };
  return { charge, peek: charge, adjust: () => [] };
}
