import { z } from "zod";
import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import {
  exampleApi,
  exampleIdentityInput,
  exampleKeyInput,
  examplePortalSession,
} from "../../platform/vocabulary/examples.ts";
import { ApiId, asSecret, ExternalId, Identity } from "../../platform/vocabulary/schema.ts";
import { ApiWriter } from "../apis/statements.ts";
import { IdentityWriter } from "../identities/statements.ts";
import { RoleWriter } from "../permissions/statements/roles.ts";
import { KEYS_DEFAULT, PortalActions, PortalKeys, PortalPageInput, SessionLife } from "./fields.ts";
import type { StoredApiPortal } from "./record.ts";
import { PortalSessionWriter } from "./statements.ts";
import { type PortalPage, type PortalTerms, portalRequirement } from "./terms.ts";

const NO_ACTIONS = "Name the `actions` of the session, or set those of its API in `portal` with `apis.updateApi`.";
const ONE_OWNER = "Name one owner: `externalId` or `identity`.";

export const createSession = mutation("portal.createSession", {
  summary: "Create a session of the portal",
  description:
    "In a session, the owner of keys manages them: on the page at `url`, or in your own page with the element " +
    "`<latchkey-keys>`. Create one on your server for a user that has signed in there, and send the user to `url`. The " +
    "session reaches only the keys of this owner in this API, and can do no more than its root key. It ends with the root " +
    "key, the API or the owner, and 20 newer sessions of the same owner end it too.",
  permissions: [
    "apis.{apiId}.create_portal_session",
    "apis.{apiId}.read_key",
    "apis.{apiId}.create_key",
    "apis.{apiId}.update_key",
    "apis.{apiId}.delete_key",
    "apis.{apiId}.read_analytics",
    "budgets.*.read_budget",
  ],
  input: z.strictObject({
    apiId: ApiId,
    externalId: ExternalId.optional().describe(
      "Your own identifier of the owner. An identity that does not exist yet is created.",
    ),
    identity: Identity.optional().describe("Instead of `externalId`: the id or external id of an existing identity."),
    actions: PortalActions.optional().describe(
      "What the holder of the session may do with the keys: `list` them, `create` new ones, `reroll`, `rename` and " +
        "`delete` them, see their `usage`, and see what is `left` of their credits and budgets. The root key needs the " +
        "permission for each action. Omitted: what the `portal` of the API says.",
    ),
    keys: PortalKeys.optional(),
    page: PortalPageInput.optional().describe(
      "How the page looks. A member that is omitted is as the `portal` of the API says.",
    ),
    expiresIn: SessionLife,
  }),
  output: z.strictObject({
    sessionId: z.string(),
    token: asSecret(z.string()).describe("The token of the session. Only this response contains it."),
    url: asSecret(z.string()).describe(
      "The address of the page, with the token. Absolute if the service has `LATCHKEY_PUBLIC_URL`; otherwise the path.",
    ),
    expiresAt: z.int().describe("Unix time in milliseconds at which the session ends."),
  }),
  problems: ["api_not_found", "identity_not_found", "role_not_found"],
  examples: [
    {
      summary: "A user manages up to three keys",
      input: {
        apiId: exampleApi.apiId,
        externalId: exampleKeyInput.externalId,
        actions: ["list", "create", "reroll", "rename", "delete", "usage"],
        keys: { max: 3, expiresInMax: 31_536_000_000 },
        page: {
          name: "Acme Documents",
          logoUrl: "https://acme.example/logo.svg",
          color: "#246bce",
          language: "en",
          returnUrl: "https://acme.example/account",
        },
      },
      output: examplePortalSession,
    },
    {
      summary: "A user only sees the keys and their usage",
      input: { apiId: exampleApi.apiId, identity: exampleIdentityInput.externalId, actions: ["list", "usage"] },
      output: {
        sessionId: "ps_d8Xy2QhVnT4mLr7s",
        token: "lk_portal_GTA3vSqRSpCQEbZzTFisW9stj8RGiD4vo1kmDB7",
        url: "/portal#lk_portal_GTA3vSqRSpCQEbZzTFisW9stj8RGiD4vo1kmDB7",
        expiresAt: examplePortalSession.expiresAt,
      },
    },
    {
      summary: "A session without actions, in an API whose portal names none",
      input: { apiId: exampleApi.apiId, externalId: exampleKeyInput.externalId },
      problem: "invalid_input",
      detail: NO_ACTIONS,
    },
    {
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM", externalId: "acme", actions: ["list"] },
      problem: "api_not_found",
    },
  ],
}).handle(async (input, { store, principal, random, secrets, publicUrl, now, invalidate, audit, fail }) => {
  const { apiId, externalId, expiresIn, keys } = input;
  principal.authorize(`apis.${apiId}.create_portal_session`);
  for (const action of input.actions ?? []) principal.authorize(portalRequirement(action, apiId));
  if ((externalId === undefined) === (input.identity === undefined)) return fail("invalid_input", ONE_OWNER);
  const api = await store.of(ApiWriter).find(apiId);
  if (!api) return fail("api_not_found");
  const inherited: StoredApiPortal = api.portal === null ? {} : JSON.parse(api.portal);
  const actions = [...new Set(input.actions ?? inherited.actions)];
  if (actions.length === 0) return fail("invalid_input", NO_ACTIONS);
  for (const action of actions) principal.authorize(portalRequirement(action, apiId));
  const page = { ...inherited.page, ...input.page };
  for (const name of keys?.roles ?? []) {
    const role = await store.of(RoleWriter).find(name);
    if (role?.name !== name) return fail("role_not_found", `Role '${name}' was not found.`);
  }
  const identities = store.of(IdentityWriter);
  const identityId =
    externalId === undefined
      ? (await identities.find(input.identity!))?.id
      : await identities.ensure(externalId, random, now);
  if (identityId === undefined) return fail("identity_not_found");
  // So that sessions that are created at once do not exceed the maximum together.
  await identities.lock(identityId);

  const portalSessions = store.of(PortalSessionWriter);
  const token = await portalSessions.newToken(secrets);
  const terms: PortalTerms = {
    actions,
    keys: {
      max: keys?.max ?? KEYS_DEFAULT,
      prefixes: keys?.prefixes ?? null,
      expiresInMax: keys?.expiresInMax ?? null,
      roles: keys?.roles ?? [],
    },
  };
  const looks: PortalPage = {
    name: page.name ?? null,
    logoUrl: page.logoUrl ?? null,
    color: page.color ?? null,
    language: page.language ?? null,
    returnUrl: page.returnUrl ?? null,
  };
  const expiresAt = now + expiresIn;
  const { id: sessionId, ended } = await portalSessions.insert(
    {
      root_key_id: principal.rootKeyId,
      api_id: apiId,
      identity_id: identityId,
      hash: hashSecret(token),
      terms: JSON.stringify(terms),
      page: JSON.stringify(looks),
      created_at: now,
      expires_at: expiresAt,
    },
    random,
  );
  if (ended.length === 0)
    invalidate.nothing("A token is not sent before its session exists, so none is cached as missing.");
  for (const id of ended) invalidate.session(id);
  audit([sessionId, apiId, identityId], { actions, expiresAt }, []);
  return { sessionId, token, url: `${publicUrl}/portal#${token}`, expiresAt };
});
