import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { writeOwner } from "./owners.ts";

/** The inverse, as docs/moving.md states it. */
function readOwner(externalId: string): string {
  return externalId.startsWith("enc--")
    ? decodeURIComponent(externalId.slice("enc--".length).replaceAll("_", "%"))
    : externalId;
}

describe("the owner of a key", () => {
  it("is its external id, if that is possible", () => {
    for (const owner of ["acme", "user_2B9f", "a.b-c_d", "enc", "enc--", "enc--a_b", "_2B", "x".repeat(255)]) {
      assert.deepEqual(writeOwner(owner), { externalId: owner });
    }
  });

  it("is written in a form of its own otherwise", () => {
    for (const [original, externalId] of [
      ["jane.doe+test@example.com", "enc--jane.doe_2Btest_40example.com"],
      ["auth0|5f7c_1", "enc--auth0_7C5f7c_5F1"],
      ["Zoë", "enc--Zo_C3_AB"],
      ["a b", "enc--a_20b"],
      ["🔑", "enc--_F0_9F_94_91"],
    ]) {
      assert.deepEqual(writeOwner(original!), { externalId, original });
    }
  });

  it("is rejected if it looks like the written form of another one, or becomes too long", () => {
    assert.match(
      JSON.stringify(writeOwner("enc--jane_40example.com")),
      /"rejected":"has an owner that begins with enc--/,
    );
    assert.match(JSON.stringify(writeOwner(`@${"x".repeat(250)}`)), /"rejected":"has an owner that is longer than 255/);
  });

  it("can be read back from what is written, which every operation accepts", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 });
    const likely = fc.stringMatching(/^[a-z_|@.+-]{1,12}$/);
    fc.assert(
      fc.property(fc.oneof(text, likely), (original) => {
        const written = writeOwner(original);
        if ("rejected" in written || original.includes("\0")) return;
        assert.match(written.externalId, /^[a-zA-Z0-9_.-]{1,255}$/);
        if (written.original !== undefined) assert.equal(readOwner(written.externalId), original);
        else assert.equal(written.externalId, original);
      }),
    );
  });
});
