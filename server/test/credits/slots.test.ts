/** Slots in the ledger, on both databases, through the ledgers of two nodes. `SEED=17` repeats a run. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { OnExpiry } from "../../../engine/src/credits/hold.ts";
import type { SlotLimit } from "../../../engine/src/credits/spend.ts";
import type { Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { SLOTS, slotsId } from "../../../engine/src/rules/slots.ts";
import { SlotWriter } from "../../src/features/credits/statements/slots.ts";
import { describeOnStores, type TestServer } from "../harness.ts";
import { Book } from "./hold-model.ts";

const STEPS = Number(process.env.STEPS ?? 400);
const seed = Number(process.env.SEED ?? 52);
const HOUR = 3_600_000;
/** Far from the small seeds, with one of which the server makes ids. */
const BOOK_SEED = 2_000_000_033;

/** A hold of the model. */
interface OpenHold {
  readonly id: string;
  /** What it has a slot of. */
  readonly slots: readonly string[];
  readonly balances: readonly string[];
  isAged: boolean;
}

/** Slots of some owners, which two nodes use. */
class Nodes {
  readonly books: readonly [Book, Book];
  readonly #server: TestServer;

  constructor(server: TestServer, random: Random) {
    this.#server = server;
    this.books = [new Book(server, random), new Book(server, random)];
  }

  async open(owners: readonly string[]): Promise<string[]> {
    await this.books[0].write((sql) =>
      new SlotWriter(sql, this.#server.workspaceId).insertAll(
        owners.map((id) => ({ id, limits: [{ name: "streams" }] })),
      ),
    );
    return owners.map((owner) => slotsId(owner, "streams"));
  }

  take(
    node: 0 | 1,
    slots: readonly SlotLimit[],
    { balances = [], cost = 0, onExpiry = "release", isAllowed }: Partial<Call> = {},
  ) {
    const book = this.books[node];
    const hold = { holdId: book.newHoldId(), ttl: HOUR, onExpiry, keyId: "key_1", apiId: "api_1" };
    return book.ledger.spend({
      workspaceId: this.#server.workspaceId,
      balances,
      cost,
      charges: isAllowed,
      hold,
      slots,
    });
  }

  async used(ids: readonly string[]): Promise<number[]> {
    const rows = await this.books[0].rows(ids);
    return ids.map((id) => {
      const { held, remaining } = rows.get(id)!;
      assert.equal(remaining + (held ?? 0), SLOTS);
      return held ?? 0;
    });
  }
}

interface Call {
  readonly balances: readonly string[];
  readonly cost: number;
  readonly onExpiry: OnExpiry;
  readonly isAllowed: boolean | undefined;
}

describeOnStores("slots in the ledger", (server) => {
  it("are given to exactly 50 of 1,000 calls at once of two nodes, and given back once (rule 96)", async () => {
    const nodes = new Nodes(server, seededRandom(BOOK_SEED + 1));
    const [id = ""] = await nodes.open(["pool_crowd"]);
    const slots = [{ balanceId: id, limit: 50 }];
    const calls = Array.from({ length: 1_000 }, (_, i) => nodes.take(i % 2 === 0 ? 0 : 1, slots));
    const outcomes = await Promise.all(calls);
    const open = outcomes.flatMap((one) => (one.outcome === "spent" && one.hold ? [one.hold.holdId] : []));
    assert.equal(open.length, 50);
    assert.deepEqual(await nodes.used([id]), [50]);
    const [one, other] = nodes.books;
    await Promise.all(open.flatMap((holdId) => [one.settle(holdId, [id], 0), other.settle(holdId, [id], 0)]));
    assert.deepEqual(await nodes.used([id]), [0]);
  });

  it("are free for calls whose limits refuse others of the same batch (rule 97)", async () => {
    const nodes = new Nodes(server, seededRandom(BOOK_SEED + 2));
    const [id = ""] = await nodes.open(["pool_refused"]);
    const slots = [{ balanceId: id, limit: 3 }];
    const calls = Array.from({ length: 40 }, (_, i) => nodes.take(0, slots, { isAllowed: i % 4 === 3 }));
    const outcomes = (await Promise.all(calls)).map(({ outcome }) => outcome);
    assert.equal(outcomes.filter((outcome) => outcome === "spent").length, 3);
    assert.deepEqual(await nodes.used([id]), [3]);
  });

  it(`are those of the open holds after each of ${STEPS} random steps, seed ${seed}`, async () => {
    const random = seededRandom(seed);
    const nodes = new Nodes(server, seededRandom(BOOK_SEED));
    const ids = await nodes.open(["pool_a", "pool_b", "id_team"]);
    await nodes.books[0].open("bud_slots", 50);
    let holds: OpenHold[] = [];
    const usedOf = (id: string) => holds.filter(({ slots }) => slots.includes(id)).length;
    for (let step = 0; step < STEPS; step++) {
      const node = random.below(2) === 0 ? 0 : 1;
      const book = nodes.books[node];
      const hold = holds[random.below(Math.max(1, holds.length))];
      const kind = ["take", "take", "take", "take", "settle", "release", "extend", "age", "expire"][random.below(9)];
      if (kind === "take") {
        const taken = ids.filter(() => random.below(2) === 0);
        // Keys of one pool can have different limits.
        const slots = taken.map((balanceId) => ({ balanceId, limit: 1 + random.below(4) }));
        const call = {
          balances: random.below(2) === 0 ? ["bud_slots"] : [],
          cost: random.below(20),
          onExpiry: random.below(2) === 0 ? ("charge" as const) : ("release" as const),
          isAllowed: [undefined, true, false][random.below(3)],
        };
        if (taken.length === 0) continue;
        const answer = await nodes.take(node, slots, call);
        const lacking = () => slots.filter(({ balanceId, limit }) => usedOf(balanceId) >= limit);
        // Expired holds end for a call that lacks their slots; which of its balances lacked decides which ones.
        if (answer.outcome === "insufficient" && !answer.lacks.some(({ balanceId }) => balanceId !== "bud_slots")) {
          const rows = await book.rows(["bud_slots"]);
          assert(rows.get("bud_slots")!.remaining < call.cost);
        }
        holds = await stillOpen(book, holds);
        const what = `step ${step}: ${JSON.stringify(slots)}, ${JSON.stringify(answer)}`;
        if (answer.outcome === "spent") {
          assert.deepEqual(lacking(), [], what);
          const { holdId } = answer.hold!;
          const stored = await book.hold(holdId);
          const balances: { id: string }[] = JSON.parse(stored!.balances);
          holds.push({ id: holdId, slots: taken, balances: balances.map(({ id }) => id), isAged: false });
        } else if (answer.outcome === "insufficient") {
          const full = answer.lacks.flatMap(({ balanceId }) => (balanceId === "bud_slots" ? [] : [balanceId]));
          assert.deepEqual(
            full.toSorted(),
            lacking()
              .map(({ balanceId }) => balanceId)
              .toSorted(),
            what,
          );
        } else {
          assert.deepEqual([answer.outcome, lacking()], ["limited", []], what);
        }
      } else if (hold) {
        if (kind === "settle") await book.settle(hold.id, hold.balances, random.below(30));
        if (kind === "release") await book.change(hold.id, hold.balances, { kind: "release" });
        if (kind === "extend") await book.change(hold.id, hold.balances, { kind: "extend", ttl: 2 * HOUR });
        if (kind === "expire") await book.change(hold.id, hold.balances, { kind: "expire" });
        if (kind === "age") await book.age([hold.id], hold.balances);
        if (kind === "age") hold.isAged = true;
        // A late end of a hold gives back nothing more.
        else if (random.below(3) === 0) await book.settle(hold.id, hold.balances, random.below(30));
        const ends = kind === "settle" || kind === "release" || hold.isAged;
        const before = holds.length;
        holds = await stillOpen(book, holds);
        if (ends && kind !== "age") assert.equal(holds.length, before - 1, `step ${step}: ${kind}`);
      }
      assert.deepEqual(await nodes.used(ids), ids.map(usedOf), `step ${step}`);
    }
    for (const { id, balances } of holds.toReversed()) await nodes.books[1].settle(id, balances, 0);
    assert.deepEqual(await nodes.used(ids), [0, 0, 0]);
  });
});

/** Those that are stored as open. */
async function stillOpen(book: Book, holds: readonly OpenHold[]): Promise<OpenHold[]> {
  let open = new Set<string>();
  await book.write(async ({ db }) => {
    const rows = await db.selectFrom("holds").select("id").where("state", "=", "open").execute();
    open = new Set(rows.map(({ id }) => id));
  });
  return holds.filter(({ id }) => open.has(id));
}
