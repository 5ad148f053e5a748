import { z } from "zod";
import { stepNames } from "../../../../engine/src/verification/checks.ts";
import { PERMISSIONS_LISTED_MAX } from "../../../../engine/src/verification/explanation.ts";
import { type KeyPlace, verificationCodes } from "../../../../engine/src/verification/request.ts";
import type { KeyOriginsQuestion } from "../../../../engine/src/verification/stored.ts";
import type { QueryContext } from "../../platform/rpc/operation.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { exampleSecret, exampleTime, exampleVerification } from "../../platform/vocabulary/examples.ts";
import { KeyId, ModeOutput, ShadowOutput, WindowOutput } from "../../platform/vocabulary/schema.ts";
import { OnEmpty } from "../budgets/record.ts";
import { CreditsState } from "../credits/record.ts";
import { ConcurrencyState } from "../holds/record.ts";
import { analysis } from "../services.ts";
import { mistakeProblems } from "./mistakes.ts";
import { DerivedKeyReader } from "./statements/derived-keys.ts";
import { KeyReader } from "./statements/keys.ts";
import { KeyString, verificationFields } from "./verification-fields.ts";

const Step = z.strictObject({
  step: z.enum(stepNames).describe("What was checked."),
  code: z.enum(verificationCodes).describe("The code of a verification that fails here."),
  result: z
    .enum(["passed", "decided", "notReached"])
    .describe("`decided`: it failed, and its code is the answer. The steps after it are not reached."),
  detail: z.string().describe("What was compared, as a sentence."),
});

const Query = z.strictObject({
  text: z.string().describe("The query, with its operators in capitals."),
  satisfied: z.boolean(),
  parts: z
    .array(z.strictObject({ text: z.string(), satisfied: z.boolean() }))
    .describe("The parts that must all be satisfied: the operands of the outermost `AND`."),
  slugs: z
    .array(
      z.strictObject({
        slug: z.string(),
        grantedBy: z
          .string()
          .optional()
          .describe("The permission of the key that includes it: itself or a wildcard. Absent: there is none."),
      }),
    )
    .describe("Each permission that the query names."),
});

const Limit = z.strictObject({
  id: z.string().describe("Empty if the call gives the limit."),
  name: z.string(),
  limit: z.int(),
  duration: z.int().describe("Length of the window in milliseconds."),
  mode: ModeOutput.optional(),
  shadow: ShadowOutput.optional(),
  from: z
    .enum(["key", "identity", "derived", "call"])
    .describe(
      "Where the limit comes from. All keys of an identity share the counters of its limits. `derived`: a derived key, or one " +
        "that it was derived from.",
    ),
  plan: z
    .string()
    .optional()
    .describe("The name of the plan that gives it to the key or to the identity. Absent: it is one of their own."),
  use: z
    .enum(["charged", "checked", "replaced", "unused"])
    .describe(
      "What a verification does with it: `charged`; `checked`, without a charge, because the call names other limits; " +
        "`replaced` by the limit of the same name that the call gives; `unused`, because the call does not name it and it " +
        "has no `autoApply`.",
    ),
  cost: z.int().optional().describe("What the call costs. Absent if the limit is replaced or unused."),
  exceeded: z
    .boolean()
    .optional()
    .describe("Whether the limit denies the call, or would if it were not in shadow mode. Absent like `cost`."),
  retryAfter: z
    .int()
    .optional()
    .describe("Milliseconds until this cost would pass without other calls. Absent: never, or like `cost`."),
  used: z.int().describe("The counter: what was charged in the sliding window that ends now."),
  window: WindowOutput,
});

const Held = z.int().describe("What open holds have taken from it.");

export const explainVerification = analysis("keys.explainVerification", {
  summary: "Explain a verification",
  description:
    "Says how `keys.verifyKey` would answer this body now, and why: each step in its order with what it compared, the " +
    "permissions with where each comes from, the limits with their counters, the credits and the budgets. It charges nothing and is " +
    "not in the analytics. Give `key` or `keyId`. A key that the root key may not read looks like one that does not exist. " +
    "A root key without `verify_key` gets `NOT_FOUND` with that reason, as a verification gets `NOT_FOUND`. With " +
    "`NOT_FOUND`, the explanation ends with that step.",
  permissions: ["apis.{apiId}.read_key", "apis.{apiId}.verify_key"],
  input: z.strictObject({
    key: KeyString.optional(),
    keyId: KeyId.optional().describe("Instead of `key`: the id of the key. Its string is then not looked up."),
    ...verificationFields,
  }),
  output: z.strictObject({
    valid: z.boolean(),
    code: z.enum(verificationCodes).describe("The code that `keys.verifyKey` would answer."),
    at: z.int().describe("The time of the decision, Unix time in milliseconds."),
    steps: z.array(Step),
    key: z
      .strictObject({
        keyId: z.string(),
        apiId: z.string(),
        plan: z.string().optional().describe("The name of its plan."),
        identity: z
          .strictObject({
            id: z.string(),
            externalId: z.string(),
            plan: z.string().optional().describe("The name of its plan."),
          })
          .optional(),
      })
      .optional()
      .describe("Absent if no key was found."),
    record: z
      .strictObject({
        source: z.enum(["cache", "database"]),
        currentAt: z
          .int()
          .describe("The record includes every change that was made before this Unix time in milliseconds."),
      })
      .optional()
      .describe("Where the node that answers had the record of the key from."),
    permissions: z
      .strictObject({
        query: Query.optional().describe("Absent if the call asks for no permission."),
        effective: z
          .array(
            z.strictObject({
              slug: z.string(),
              direct: z.boolean().describe("Whether the key has it itself."),
              roles: z.array(z.string()).describe("Names of the roles of the key that have it."),
              plan: z.string().optional().describe("The name of the plan of the key, if that gives it too."),
            }),
          )
          .describe(`At most ${PERMISSIONS_LISTED_MAX}, first those that the query needs.`),
        count: z.int().describe("The number of permissions of the key."),
      })
      .optional(),
    concurrency: z
      .array(ConcurrencyState.extend({ plan: z.string().optional().describe("The name of the plan that gives it.") }))
      .optional()
      .describe("Every limit of concurrency of the key and of its identity. Absent: none."),
    ratelimits: z.array(Limit).optional().describe("Every limit of the key, of its identity and of the call."),
    credits: CreditsState.extend({
      held: Held,
      cost: z.int().describe("What the call costs."),
      plan: z.string().optional().describe("The name of the plan that gives it. Absent: it is one of the key."),
    })
      .optional()
      .describe("Absent: unlimited."),
    budgets: z
      .array(
        CreditsState.extend({
          budgetId: z.string(),
          name: z.string(),
          unit: z.string().optional(),
          onEmpty: OnEmpty,
          held: Held,
          cost: z.int().describe("What the call costs."),
          exceeded: z.boolean().describe("Whether it does not cover the call."),
          plan: z.string().optional().describe("The plan of the identity, if that gives it."),
        }),
      )
      .optional()
      .describe("The budgets that the call is charged to. Absent: none."),
    derived: z
      .array(
        z.strictObject({
          keyId: z.string(),
          parentKeyId: z.string(),
          expires: z.int().describe("Unix time in milliseconds."),
          ended: z.boolean().describe("Whether it was ended before."),
          permissions: z
            .array(z.string())
            .optional()
            .describe("It has those permissions of its parent that are also here. Absent: all of them."),
          credits: z
            .strictObject({ max: z.int(), remaining: z.int() })
            .optional()
            .describe("What it may spend at most."),
        }),
      )
      .optional()
      .describe("The derived key, and each one that it was derived from. Absent: it is no derived key."),
    edge: z
      .strictObject({
        id: z.string(),
        name: z.string().optional().describe("Absent: it has none."),
        record: z
          .strictObject({
            currentAt: z
              .int()
              .describe(
                "The record includes every change that was made before this Unix time in milliseconds, by the clock of the edge.",
              ),
          })
          .optional()
          .describe("Its record of the key. Absent: it has none that it may use, or the call has `keyId`."),
        leases: z
          .array(
            z.strictObject({
              name: z.string().describe("The name of the limit."),
              from: z.enum(["key", "identity"]).describe("Where the limit comes from."),
              remaining: z.int().describe("What is left of the lease. The counter of the limit has all of it already."),
              expiresAt: z.int().describe("Unix time in milliseconds, by the clock of the edge."),
            }),
          )
          .describe("What it holds of the limits of the key. Empty without its record."),
      })
      .optional()
      .describe(
        "The edge that has passed on the call, with what it would decide a verification by: `latchkey edge` or `LocalLatchkey`. " +
          "Everything else is the service's. Absent: there was none.",
      ),
  }),
  problems: ["key_not_found", "permissions_query_syntax_error", "hold_required", "precondition_failed"],
  examples: [
    {
      summary: "Why a key is not found",
      input: { key: "3kAqEg4u4qMxCGFAVMuGsb3cijGp" },
      output: {
        valid: false,
        code: "NOT_FOUND",
        at: exampleTime,
        steps: [
          {
            step: "lookup",
            code: "NOT_FOUND",
            result: "decided",
            detail: "No key that this root key may read has this string.",
          },
        ],
      },
    },
    {
      summary: "A key string and an id",
      input: { key: exampleSecret, keyId: exampleVerification.keyId },
      problem: "invalid_input",
      detail: "Give `key` or `keyId`, and not both.",
    },
    {
      summary: "A key id that does not exist",
      input: { keyId: "key_IXIyFsB89IXl4uYc" },
      problem: "key_not_found",
    },
  ],
})
  .authorize(async ({ key, keyId, clientIp, ...request }, { store, principal, fail }) => {
    if ((key === undefined) === (keyId === undefined)) fail("invalid_input", "Give `key` or `keyId`, and not both.");
    const stored = keyId === undefined ? undefined : await placeOf(keyId, { store, principal, fail });
    return { request: { key: key ?? "", ...request }, clientIp, stored };
  })
  .answer(
    async ({ request, clientIp, stored }, { explainer, keys, reads }, { clock, principal, workspaceId, address }) => {
      const [now, startedAt] = [clock.now(), clock.monotonic()];
      const asked = { ...request, workspaceId, principal, address: clientIp ?? address, requestId: "", now, startedAt };
      const readOrigins = (question: KeyOriginsQuestion) => reads.run(workspaceId, () => keys.origins(question));
      const explained = await explainer.explain(asked, stored, readOrigins);
      if ("kind" in explained) throw new Problem(mistakeProblems[explained.kind], explained.message);
      return explained;
    },
  );

/** Where a key or a derived key is stored, which the caller may read. */
async function placeOf(
  keyId: string,
  { store, principal, fail }: Pick<QueryContext<"key_not_found">, "store" | "principal" | "fail">,
): Promise<KeyPlace> {
  const keys = store.of(KeyReader);
  const key = await keys.find(keyId);
  const derived = key ? undefined : await store.of(DerivedKeyReader).find(keyId);
  const top = key ?? (derived && (await keys.find(derived.top_id)));
  if (!top) return fail("key_not_found");
  principal.authorize(`apis.${top.api_id}.read_key`);
  if (derived) return { hash: derived.hash, migrationId: null, isDerived: true };
  return { hash: top.hash, migrationId: top.migration_id };
}
