import { z } from "zod";
import type { ServiceRules } from "../../../cli/src/service-rules.ts";
import { findLoss, type Loss } from "../../../engine/src/rules/json-text.ts";
import { updateApi } from "../features/apis/updateApi.ts";
import { createBudget } from "../features/budgets/createBudget.ts";
import { migrateKeys } from "../features/keys/migrateKeys.ts";
import { createPermission } from "../features/permissions/createPermission.ts";
import { createRole } from "../features/permissions/createRole.ts";
import { createPlan } from "../features/plans/createPlan.ts";
import { setDescriptors } from "../features/ratelimits/setDescriptors.ts";
import { setOverride } from "../features/ratelimits/setOverride.ts";
import { updateRootKey } from "../features/rootKeys/updateRootKey.ts";
import { UPSTREAM_HEADERS_MAX, UpstreamInput } from "../features/upstreams/record.ts";
import type { InputError } from "../platform/rpc/problems.ts";
import { inputErrorsOf, PARSE_OPTIONS } from "../platform/rpc/validate.ts";
import { Expires } from "../platform/vocabulary/schema.ts";

// The shapes are those of the operations. A member that is absent has no value in the service.

const header = UpstreamInput.shape.headers.unwrap().element;
const Api = updateApi.declaration.input
  .omit({ apiId: true })
  .required({ name: true })
  .extend({
    upstream: UpstreamInput.extend({
      // An exported one has no values. They are needed only where the verifier is set.
      headers: z
        .array(header.partial({ value: true }))
        .max(UPSTREAM_HEADERS_MAX)
        .default([]),
    }).nullish(),
  });
const Permission = createPermission.declaration.input.partial({ name: true });
const Role = createRole.declaration.input;
const Override = setOverride.declaration.input.omit({ namespace: true });
const Namespace = z.strictObject({
  name: setOverride.declaration.input.shape.namespace,
  overrides: z.array(Override).optional(),
  descriptors: setDescriptors.declaration.input.shape.descriptors.optional(),
  atomic: z.boolean().optional(),
  metadata: z.boolean().optional(),
});
const Budget = createBudget.declaration.input.omit({ parentId: true }).extend({
  onEmpty: createBudget.declaration.input.shape.onEmpty.unwrap().optional(),
  parent: z.string().optional(),
});
const Time = z.union([Expires, z.iso.datetime().transform((text) => Date.parse(text))]);
const RootKey = updateRootKey.declaration.input
  .omit({ rootKeyId: true, permissions: true, expires: true })
  .required({ name: true })
  .extend({
    // Ids can be written as names, so the schema of the operation applies when they are resolved.
    permissions: z.array(z.string().min(1)).min(1),
    expires: Time.optional(),
  });

/** The document of `latchkey apply`. */
export const Document = z
  .strictObject({
    permissions: z.array(Permission).optional(),
    roles: z.array(Role).optional(),
    namespaces: z.array(Namespace).optional(),
    apis: z.array(Api).optional(),
    budgets: z.array(Budget).optional(),
    plans: z.array(createPlan.declaration.input).optional(),
    rootKeys: z.array(RootKey).optional(),
  })
  .check(({ value: { permissions, roles, namespaces, plans }, issues }) => {
    const unique = (path: (string | number)[], names: readonly string[] | undefined) =>
      names?.forEach((name, i) => {
        if (names.indexOf(name) === i) return;
        issues.push({ code: "custom", input: name, path: [...path, i], message: `names ${name} a second time` });
      });
    unique(
      ["permissions"],
      permissions?.map(({ slug }) => slug.toLowerCase()),
    );
    unique(
      ["roles"],
      roles?.map(({ name }) => name.toLowerCase()),
    );
    unique(
      ["namespaces"],
      namespaces?.map(({ name }) => name),
    );
    unique(
      ["plans"],
      plans?.map(({ name }) => name),
    );
    for (const [i, { overrides }] of namespaces?.entries() ?? []) {
      unique(
        ["namespaces", i, "overrides"],
        overrides?.map(({ identifier }) => identifier),
      );
    }
  });

/** What JSON cannot hold. Its position is that of a text which nobody has seen. */
function lossError({ message, fix }: Loss): InputError {
  return { location: "body", message, fix };
}

/** The schemas of the operations, for the commands that check input before they call the service. */
export const serviceRules: ServiceRules = {
  readDocument(value) {
    const { data, error } = Document.safeParse(value, PARSE_OPTIONS);
    if (error) return { errors: inputErrorsOf(error.issues, Document) };
    // The service would refuse it in one of the calls, after those before it.
    const loss = findLoss(JSON.stringify(value), value, true);
    return loss ? { errors: [lossError(loss)] } : { document: data };
  },
  errorsOfImport(input) {
    const { error } = migrateKeys.declaration.input.safeParse(input, PARSE_OPTIONS);
    if (error) return inputErrorsOf(error.issues, migrateKeys.declaration.input);
    const loss = findLoss(JSON.stringify(input), input, true);
    return loss ? [lossError(loss)] : [];
  },
  importedTogether(input) {
    const smallest = migrateKeys.split(migrateKeys.declaration.input.parse(input), () => 0);
    return Array.from(smallest, ({ input: { keys } }) => keys.length);
  },
};
