import type { CallDirectories } from "../../../../engine/src/directory/directories.ts";
import { addressNetwork } from "../../../../engine/src/rules/address.ts";

const WORKSPACE_ID = /^ws_[0-9A-Za-z]{16}$/;

export interface IssuersOptions {
  /** The public address of the service, without a slash at its end. */
  publicUrl: string;
  defaultWorkspaceId: string;
  directories: Pick<CallDirectories, "workspaces" | "keyLookups">;
}

/**
 * The issuers of access tokens: each workspace is one, with keys of its own. That of the default workspace is the public
 * address of the service, the others are below it.
 */
export class Issuers {
  readonly #options: IssuersOptions;

  constructor(options: IssuersOptions) {
    this.#options = options;
  }

  /** The issuer of a workspace: RFC 8414, section 2. */
  of(workspaceId: string): string {
    const { publicUrl, defaultWorkspaceId } = this.#options;
    return workspaceId === defaultWorkspaceId ? publicUrl : `${publicUrl}/oauth/${workspaceId}`;
  }

  /**
   * The workspace that a path names; the default one without a name. Null if there is none, or it is disabled. An invented
   * name costs a look-up of the budget of unknown keys.
   */
  async find(name: string | undefined, address: string): Promise<string | null> {
    const { defaultWorkspaceId, directories } = this.#options;
    if (name === undefined) return defaultWorkspaceId;
    // One issuer has one address.
    if (name === defaultWorkspaceId || !WORKSPACE_ID.test(name)) return null;
    const { workspaces, keyLookups } = directories;
    const known = workspaces.get(name);
    const found =
      known === undefined ? await keyLookups.spend(addressNetwork(address), () => workspaces.load(name)) : known;
    return found?.enabled ? found.workspaceId : null;
  }

  /** RFC 8414, section 2, and RFC 7662 for introspection. */
  metadata(workspaceId: string): object {
    const { publicUrl, defaultWorkspaceId } = this.#options;
    const base = workspaceId === defaultWorkspaceId ? `${publicUrl}/oauth` : this.of(workspaceId);
    const methods = ["client_secret_basic", "client_secret_post"];
    return {
      issuer: this.of(workspaceId),
      token_endpoint: `${base}/token`,
      jwks_uri: `${base}/jwks`,
      introspection_endpoint: `${publicUrl}/oauth/introspect`,
      // Required, and empty: nobody signs in here.
      response_types_supported: [],
      grant_types_supported: ["client_credentials"],
      token_endpoint_auth_methods_supported: methods,
      introspection_endpoint_auth_methods_supported: [...methods, "Bearer"],
    };
  }
}
