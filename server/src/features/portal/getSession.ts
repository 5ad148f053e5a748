import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { mayAct } from "./caller.ts";
import { PORTAL, portalCallerOf } from "./portal-caller.ts";
import { portalActions, portalLanguages } from "./terms.ts";

export const getSession = query("portal.getSession", {
  audience: PORTAL,
  summary: "Get what the session may do, and how its page looks",
  description: "",
  permissions: [],
  input: z.strictObject({}),
  output: z.strictObject({
    actions: z
      .array(z.enum(portalActions))
      .describe("Without those for which its root key has no permission any more."),
    keys: z.strictObject({
      max: z.int(),
      prefixes: z.array(z.string()).nullable(),
      expiresInMax: z.int().nullable(),
      roles: z.array(z.string()),
    }),
    page: z.strictObject({
      name: z.string().nullable(),
      logoUrl: z.string().nullable(),
      color: z.string().nullable(),
      language: z.enum(portalLanguages).nullable(),
      returnUrl: z.string().nullable(),
    }),
    expiresIn: z.int().describe("Milliseconds until the session ends."),
  }),
  problems: [],
  examples: [],
}).handle(async (_, { principal, now }) => {
  const caller = portalCallerOf(principal)!;
  const { terms, page, expiresAt } = caller;
  const actions = terms.actions.filter((action) => mayAct(action, caller, principal));
  const { prefixes, roles } = terms.keys;
  return {
    actions,
    keys: { ...terms.keys, prefixes: prefixes && [...prefixes], roles: [...roles] },
    page: { ...page },
    expiresIn: expiresAt - now,
  };
});
