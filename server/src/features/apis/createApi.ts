import { z } from "zod";
import { newId } from "../../../../engine/src/random/random.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import { Name, OwnKeyAccess, OwnKeyDerivation } from "../../platform/vocabulary/schema.ts";
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
  }),
  output: z.strictObject({ apiId: z.string() }),
  problems: [],
  examples: [
    {
      summary: "Create an API",
      input: { name: exampleApi.name },
      output: { apiId: exampleApi.apiId },
    },
  ],
}).handle(async ({ name, ownKeyAccess, ownKeyDerivation }, { store, random, now, principal, invalidate, audit }) => {
  principal.authorize("apis.*.create_api");
  const id = newId(random, "api");
  await store.of(ApiWriter).insert({ id, name, ownKeyAccess, ownKeyDerivation, createdAt: now });
  invalidate.api(id);
  audit([id], { name, ...(ownKeyAccess && { ownKeyAccess }), ...(ownKeyDerivation && { ownKeyDerivation }) }, [
    { type: "api.created", objectId: id, data: { apiId: id, name } },
  ]);
  return { apiId: id };
});
