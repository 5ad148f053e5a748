import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compileGrants, covers, grantActions, meets, parseGrant } from "./grants.ts";

/** Few different grants, so that they often match each other. */
const grant = fc
  .tuple(
    fc.constantFrom("*", "apis", "ratelimits"),
    fc.constantFrom("*", "a", "b"),
    fc.constantFrom("*", "read_analytics", "read_key", "limit"),
  )
  .map((segments) => segments.join("."))
  .filter((text) => parseGrant(text) !== null);

/** The definition, segment by segment. */
function meetsNaively(list: readonly string[], requirement: string): boolean {
  const asked = requirement === "*" ? ["*", "*", "*"] : requirement.split(".");
  return list.some((text) => {
    const granted = text === "*" ? ["*", "*", "*"] : text.split(".");
    return granted.every((segment, at) => segment === "*" || segment === asked[at]);
  });
}

describe("parseGrant", () => {
  const table: [text: string, spelling: string | null][] = [
    ["*", "*"],
    ["*.*.*", "*"],
    ["apis.*.create_key", "apis.*.create_key"],
    ["apis.api_1.*", "apis.api_1.*"],
    ["apis.*.*", "apis.*.*"],
    ["*.*.read_api", "*.*.read_api"],
    ["*.api_1.read_api", "*.api_1.read_api"],
    ["*.api_1.*", "*.api_1.*"],
    ["ratelimits.rlns_9.limit", "ratelimits.rlns_9.limit"],
    ["identities.id_1.read_identity", "identities.id_1.read_identity"],
    ["rootKeys.*.create_root_key", "rootKeys.*.create_root_key"],
    ["workspaces.*.update_workspace", "workspaces.*.update_workspace"],
    ["audit.*.read_event", "audit.*.read_event"],

    ["api.*.create_key", "apis.*.create_key"],
    ["ratelimit.*.limit", "ratelimits.*.limit"],
    ["identity.*.read_identity", "identities.*.read_identity"],
    ["rbac.*.create_role", "permissions.*.create_role"],

    ["", null],
    ["**", null],
    ["apis", null],
    ["apis.*", null],
    ["apis.*.", null],
    ["apis..create_key", null],
    [".*.create_key", null],
    ["apis.*.create_key.x", null],
    ["apis.a.b.create_key", null],
    ["apis.a-b.create_key", null],
    ["apis.a*.create_key", null],
    ["apis.é.create_key", null],
    ["apis.*.create_*", null],
    ["api*.*.create_key", null],
    ["apis.*.limit", null],
    ["*.*.sing", null],
    ["keys.*.create_key", null],
    ["APIS.*.create_key", null],
    ["apis.*.CREATE_KEY", null],
    ["rootkeys.*.read_root_key", null],
    ["constructor.*.*", null],
    ["__proto__.*.*", null],
    ["apis.*.constructor", null],
    [" apis.*.create_key", null],
    ["apis.*.create_key\n", null],
    ["workspaces.*.delete_workspace", null],
    ["permissions.*.limit", null],
  ];
  for (const [text, spelling] of table) {
    it(`reads ${JSON.stringify(text)} as ${spelling}`, () => assert.equal(parseGrant(text), spelling));
  }

  it("accepts every action of every resource, for all ids and for one", () => {
    for (const [resource, actions] of Object.entries(grantActions)) {
      for (const action of [...actions, "*"]) {
        for (const id of ["*", "x_1"]) {
          assert.equal(parseGrant(`${resource}.${id}.${action}`), `${resource}.${id}.${action}`);
        }
      }
    }
  });

  it("leaves canonical spellings unchanged", () => {
    fc.assert(
      fc.property(grant, (text) => {
        const spelling = parseGrant(text)!;
        assert.equal(parseGrant(spelling), spelling);
      }),
    );
  });
});

describe("meets", () => {
  const table: [list: string[], requirement: string, met: boolean][] = [
    [["apis.*.create_key"], "apis.*.create_key", true],
    [["apis.*.create_key"], "apis.api_1.create_key", true],
    [["apis.api_1.create_key"], "apis.api_1.create_key", true],
    [["apis.api_1.create_key"], "apis.api_2.create_key", false],
    [["apis.api_1.create_key"], "apis.API_1.create_key", false],
    [["apis.api_1.create_key"], "apis.*.create_key", false],
    [["apis.*.create_key"], "apis.*.read_key", false],
    [["apis.*.*"], "apis.*.delete_api", true],
    [["apis.*.*"], "ratelimits.*.limit", false],
    [["apis.api_1.*"], "apis.api_1.delete_api", true],
    [["apis.api_1.*"], "apis.*.delete_api", false],
    [["*.*.read_analytics"], "ratelimits.rlns_1.read_analytics", true],
    [["*.*.read_analytics"], "ratelimits.*.limit", false],
    [["*"], "rootKeys.*.create_root_key", true],
    [["*"], "*", true],
    [["*"], "*.*.*", true],
    [["*.*.*"], "*", true],
    [["apis.*.*"], "*", false],
    [["*.*.read_api", "*.a.*"], "*", false],
    [[], "*", false],
    [[], "apis.*.read_api", false],

    [["api.*.create_key"], "apis.api_1.create_key", true],
    [["apis.api_1.create_key"], "api.api_1.create_key", true],
    [["permissions.*.create_role"], "rbac.*.create_role", true],
    [["invalid", "apis.*.sing", "keys.*.*"], "apis.*.read_api", false],
    [["apis.*.sing"], "apis.*.sing", false],

    [["*"], "", false],
    [["*"], "apis", false],
    [["*"], "apis.read_api", false],
  ];
  for (const [list, requirement, met] of table) {
    it(`${JSON.stringify(list)} ${met ? "meets" : "does not meet"} ${JSON.stringify(requirement)}`, () => {
      assert.equal(meets(compileGrants(list), requirement), met);
    });
  }

  it("equals the definition, segment by segment", () => {
    fc.assert(
      fc.property(fc.array(grant, { maxLength: 6 }), fc.oneof(grant, fc.constant("*")), (list, requirement) => {
        assert.equal(meets(compileGrants(list), requirement), meetsNaively(list, requirement));
      }),
      { numRuns: 3_000 },
    );
  });

  it("never lets an id decide which resource or action is matched", () => {
    const strange = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom(".", "*", "a", "apis", "limit", "create_key") }),
    );
    const forAll = compileGrants(["apis.*.create_key", "ratelimits.*.limit"]);
    const forOne = compileGrants(["apis.a.create_key", "ratelimits.a.limit", "apis.a.*", "*.a.limit"]);
    fc.assert(
      fc.property(strange, (id) => {
        assert.ok(meets(forAll, `apis.${id}.create_key`));
        assert.ok(!meets(forAll, `apis.${id}.delete_key`));
        assert.ok(!meets(forAll, `identities.${id}.limit`));
        assert.equal(meets(forOne, `apis.${id}.create_key`), id === "a");
      }),
      { numRuns: 1_000 },
    );
  });

  it("is independent of later changes of the list", () => {
    const list = ["apis.a.read_api"];
    const grants = compileGrants(list);
    list.push("*");
    assert.ok(!meets(grants, "apis.b.read_api"));
  });
});

describe("covers", () => {
  const table: [list: string[], others: string[], covered: boolean][] = [
    [["apis.*.*"], ["apis.*.create_key", "apis.a.*", "apis.*.*"], true],
    [["apis.*.*"], ["apis.*.create_key", "*.*.create_key"], false],
    [["apis.*.create_key", "apis.*.read_key"], ["apis.a.read_key", "apis.b.create_key"], true],
    [["apis.a.*"], ["apis.*.read_key"], false],
    [["*"], ["*", "apis.*.*", "*.*.read_api"], true],
    [["*"], ["apis.*.an_action_of_a_later_version"], true],
    [["apis.*.read_key"], ["invalid"], false],
    [["apis.*.*", "ratelimits.*.*"], ["*"], false],
    [["apis.*.read_api"], [], true],
    [[], [], true],
    [[], ["apis.*.read_api"], false],
  ];
  for (const [list, others, covered] of table) {
    it(`${JSON.stringify(list)} ${covered ? "covers" : "does not cover"} ${JSON.stringify(others)}`, () => {
      assert.equal(covers(compileGrants(list), others), covered);
    });
  }

  it("allows nothing more than the covering grants", () => {
    const several = fc.array(grant, { maxLength: 4 });
    fc.assert(
      fc.property(several, several, grant, (holder, others, requirement) => {
        fc.pre(covers(compileGrants(holder), others));
        assert.ok(!meets(compileGrants(others), requirement) || meets(compileGrants(holder), requirement));
      }),
    );
  });

  it("is true for a list and itself", () => {
    fc.assert(fc.property(fc.array(grant), (list) => assert.ok(covers(compileGrants(list), list))));
  });
});
