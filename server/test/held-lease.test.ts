/** Leases of work that one node does at a time, when the clock of the database is set back. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { HeldLease } from "../src/platform/store/held-lease.ts";
import { describeOnStores } from "./harness.ts";

const HOUR = 3_600_000;

describeOnStores("A lease of a node that has ended", (server) => {
  it("is taken a minute later, however long it lasts by the clock that was set back since (rule 228)", async () => {
    const name = "work";
    const { store, clock } = server;
    const expires = (at: number) =>
      server.change([], ({ db }) =>
        db.updateTable("leases").set({ expires_at: at }).where("name", "=", name).execute(),
      );
    const later = Date.now() + 5 * HOUR + clock.now();
    await server.change([], ({ db }) =>
      db.insertInto("leases").values({ name, holder: "ended", token: 7, expires_at: later }).execute(),
    );
    const held = new HeldLease({ store, clock, name, holder: "mine", formerHolders: [] });
    const pass = async (seconds: number) => {
      let lease = held.lease;
      for (let passed = 0; passed < seconds; passed += 10) {
        clock.advance(10_000);
        lease = await held.take();
      }
      return lease;
    };
    assert.equal(await pass(60), undefined);
    // Its holder renews it, although its clock is far ahead.
    await expires(later + 1);
    assert.equal(await pass(60), undefined);
    assert.deepEqual(await pass(20), { name, holder: "mine", token: 8 });
    await held.release();
  });
});
