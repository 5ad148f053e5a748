import { z } from "zod";
import { newId } from "../../../../engine/src/random/random.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { jsonColumn } from "../../platform/vocabulary/columns.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import { Name, OwnKeyAccess, OwnKeyDerivation } from "../../platform/vocabulary/schema.ts";
import { OLDER_PROGRAMS_OF_POLICIES } from "../keys/policy.ts";
import { PolicyInput } from "./record.ts";
import { ApiWriter } from "./statements.ts";

export const createApi = mutation("apis.createApi", {
  summary: "Create an API",
  description: "An API is a namespace of keys. A key belongs to one API. Several APIs may have the same name.",
  idempotent: true,
  permissions: ["apis.*.create_api"],
  input: z.strictObject({
    name: Name,
    ownKeyAccess: OwnKeyAccess.default(false),
    ownKeyDerivation: OwnKeyDerivation.default(false),
    policy: PolicyInput.optional(),
  }),
  output: z.strictObject({ apiId: z.string() }),
  problems: ["precondition_failed"],
  examples: [
    {
      summary: "Create an API",
      input: { name: exampleApi.name },
      output: { apiId: exampleApi.apiId },
    },
    {
      summary: "Create an API whose keys live for at most 90 days",
      input: { name: exampleApi.name, policy: { expiry: { default: 2_592_000_000, max: 7_776_000_000 } } },
      output: { apiId: exampleApi.apiId },
    },
  ],
}).handle(async ({ name, ownKeyAccess, ownKeyDerivation, policy }, context) => {
  const { store, random, now, principal, invalidate, audit, fail } = context;
  principal.authorize("apis.*.create_api");
  const apis = store.of(ApiWriter);
  if (!(await apis.accepts(policy))) return fail("precondition_failed", OLDER_PROGRAMS_OF_POLICIES);
  const id = newId(random, "api");
  await apis.insert({ id, name, ownKeyAccess, ownKeyDerivation, policy: jsonColumn(policy), createdAt: now });
  invalidate.api(id);
  const settings = { ...(ownKeyAccess && { ownKeyAccess }), ...(ownKeyDerivation && { ownKeyDerivation }) };
  audit([id], { name, ...settings, ...(policy && { policy }) }, [
    { type: "api.created", objectId: id, data: { apiId: id, name } },
  ]);
  return { apiId: id };
});
