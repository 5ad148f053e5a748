import type { Clock } from "../../../engine/src/clock/clock.ts";
import type { Directories } from "../../../engine/src/directory/directories.ts";
import type { Random } from "../../../engine/src/random/random.ts";
import { introspect } from "../features/oauth/introspect.ts";
import { Issuers } from "../features/oauth/issuers.ts";
import { issueToken } from "../features/oauth/issueToken.ts";
import { KeyFacts } from "../features/oauth/key-facts.ts";
import type { TokenRouteOptions } from "../features/oauth/routes.ts";
import type { Services } from "../features/services.ts";
import { OperatorError } from "../log/operator-error.ts";
import type { Config } from "../platform/config/config.ts";
import type { Secrets } from "../platform/config/secrets.ts";
import { FairQueue } from "../platform/rpc/fair-queue.ts";
import type { Operation } from "../platform/rpc/operation.ts";

import type { AppStore } from "./app-store.ts";

/** What introspection reads of keys. Each key is asked for once, but a workspace can ask for all of its keys at the same time. */
const FACTS = { runningMax: 2, runningPerWorkspaceMax: 1, waitingPerWorkspaceMax: 5_000 };

/** Signatures run beside the event loop, in as many threads as it has for all its work. */
const ISSUING = { runningMax: 4, runningPerWorkspaceMax: 2, waitingPerWorkspaceMax: 1_000 };

/** What the routes of OAuth call. They are not part of the API: other standards say how they are called. */
export const oauthOperations: readonly Operation[] = [introspect, issueToken];

/** What introspection and access tokens need. */
export interface OAuth {
  readonly services: Services["oauth"];
  /** Undefined: access tokens are off. */
  readonly routes: TokenRouteOptions | undefined;
}

interface OAuthOptions {
  config: Config;
  secrets: Secrets;
  clock: Clock;
  random: Random;
  store: AppStore;
  directories: Directories;
  defaultWorkspaceId: string;
}

/** @throws {OperatorError} if access tokens are on without a vault for the keys that sign them. */
export async function openOAuth({
  config,
  secrets,
  clock,
  random,
  store,
  directories,
  defaultWorkspaceId,
}: OAuthOptions): Promise<OAuth> {
  const { tokens: isOn, tokenLife, algorithm, rotation: every } = config.oauth;
  const facts = new FairQueue(FACTS);
  const common = {
    facts: new KeyFacts({
      findPlace: (question) => facts.run(question.workspaceId, () => store.read("keyPlace", question)),
      findCreation: (question) => facts.run(question.workspaceId, () => store.read("keyCreation", question)),
    }),
    resources: (api: { workspaceId: string; apiId: string }) =>
      facts.run(api.workspaceId, () => store.read("tokenResources", api)),
    issuing: new FairQueue(ISSUING),
  };
  if (!isOn) return { services: { ...common, tokens: undefined }, routes: undefined };
  if (config.database.kind === "postgres" && secrets.vaultKeys.length === 0) {
    throw new OperatorError(
      "LATCHKEY_OAUTH_TOKENS=on: the keys that sign access tokens are in the vault. Set LATCHKEY_VAULT_KEY.",
    );
  }
  // Most services issue no tokens and need no library for signatures.
  const [{ AccessTokens }, { SigningKeys }] = await Promise.all([
    import("../features/oauth/access-tokens.ts"),
    import("../features/oauth/signing-keys.ts"),
  ]);
  const issuers = new Issuers({ publicUrl: config.publicUrl, defaultWorkspaceId, directories });
  const signingKeys = new SigningKeys({
    clock,
    rotation: { algorithm, every, tokenLife },
    find: (workspaceId) => store.read("signingKeys", workspaceId),
    add: (key) => store.transact("addSigningKey", key),
  });
  const issuerOf = (workspaceId: string) => issuers.of(workspaceId);
  const tokens = new AccessTokens({ keys: signingKeys, random, life: tokenLife, issuerOf });
  return { services: { ...common, tokens }, routes: { clock, issuers, signingKeys } };
}
