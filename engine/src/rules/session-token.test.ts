import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seededRandom } from "../random/seeded.ts";
import { formatKey, PORTAL_TOKEN_PREFIX } from "./key-string.ts";
import { isDashboardToken, isPortalToken, isSignedToken, newDashboardToken, newPortalToken } from "./session-token.ts";

const random = seededRandom(7);
const secrets = (length: number) => Uint8Array.from({ length }, () => random.below(256));
const KEY = "a key";
const kinds = [
  ["dashboard", newDashboardToken, isDashboardToken, /^[A-Za-z0-9_-]{43}$/],
  ["portal", newPortalToken, isPortalToken, /^lk_portal_[0-9A-Za-z]{20,60}$/],
] as const;

for (const [kind, make, hasForm, former] of kinds) {
  describe(`a token of the ${kind}`, () => {
    it("is recognized by its signature, and has the form that nodes of the previous release look up", () => {
      for (let i = 0; i < 200; i++) {
        const token = make(KEY, secrets);
        assert(hasForm(token) && former.test(token), token);
        assert(isSignedToken(KEY, token), token);
        assert(!isSignedToken("another key", token), token);
      }
    });

    it("is not recognized after a change of one character, or cut", () => {
      const token = make(KEY, secrets);
      for (let at = 0; at < token.length; at++) {
        const other = token[at] === "A" ? "B" : "A";
        assert(!isSignedToken(KEY, token.slice(0, at) + other + token.slice(at + 1)), `at ${at}`);
        assert(!isSignedToken(KEY, token.slice(0, at)), `cut at ${at}`);
      }
    });

    it("has a signature for any random bytes, and no other token has one", () => {
      for (let zeros = 0; zeros <= 24; zeros++) {
        const token = make(KEY, (length) => secrets(length).fill(0, 0, zeros));
        assert(hasForm(token) && isSignedToken(KEY, token), token);
      }
      for (let i = 0; i < 1_000; i++) {
        assert(!isSignedToken(KEY, Buffer.from(secrets(32)).toString("base64url")));
        assert(!isSignedToken(KEY, formatKey(PORTAL_TOKEN_PREFIX, secrets(24)).key));
      }
    });
  });
}
