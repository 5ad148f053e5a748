import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { JointPrincipal, Principal } from "./principal.ts";
import { Problem } from "./problems.ts";

const NOW = instantAt(0);

/** A caller whose record was read again, and then has these grants; null: it was revoked. */
function outdated(grants: string[], after: string[] | null): Principal {
  const plain = { rootKeyId: "rk_1", workspaceId: "ws_1" };
  return new Principal({ ...plain, grants }, null, {
    rootKeyHash: "hash",
    isCurrent: () => false,
    renew: () => {
      if (after === null) throw new Problem("authentication_failed");
      return new Principal({ ...plain, grants: after });
    },
  });
}

describe("a caller after a wait", () => {
  const read = ["apis.*.read_key"];

  it("is the same if its record was read again and allows what it did", async () => {
    const caller = outdated(read, [...read]);
    assert.equal(await caller.renewIfChanged(NOW), caller);
  });

  it("may less if it has lost a permission", async () => {
    const caller = outdated([...read, "apis.*.update_key"], read);
    const renewed = await caller.renewIfChanged(NOW);
    assert.notEqual(renewed, caller);
    assert.deepEqual([renewed.may("apis.api_1.read_key"), renewed.may("apis.api_1.update_key")], [true, false]);
  });

  it("is rejected if it was revoked", async () => {
    await assert.rejects(outdated(read, null).renewIfChanged(NOW), Problem);
  });

  it("by two root keys is what both are", async () => {
    const same = new JointPrincipal(outdated(read, read), outdated(read, read));
    assert.equal(await same.renewIfChanged(NOW), same);
    const changed = await new JointPrincipal(outdated(read, read), outdated(read, [])).renewIfChanged(NOW);
    assert.equal(changed.may("apis.api_1.read_key"), false);
    await assert.rejects(new JointPrincipal(outdated(read, read), outdated(read, null)).renewIfChanged(NOW), Problem);
  });
});
