/** What a session of the portal may let its holder do. */
export const portalActions = ["list", "create", "reroll", "rename", "delete", "usage", "left"] as const;

export type PortalAction = (typeof portalActions)[number];

/** The languages of the portal. */
export const portalLanguages = ["en", "de", "fr", "es", "pt", "ja", "ar"] as const;

/** What a session of the portal may do with the keys of one owner in one API. */
export interface PortalTerms {
  readonly actions: readonly PortalAction[];
  readonly keys: {
    /** Keys that the owner may have in the API, without expired ones. */
    readonly max: number;
    /** Prefixes of new keys, the default first; null: that of the API. */
    readonly prefixes: readonly string[] | null;
    /** The longest life of a new key in milliseconds; null: new keys need no expiry. */
    readonly expiresInMax: number | null;
    /** Names of the roles that a new key may have. */
    readonly roles: readonly string[];
  };
}

/** How the page of a session looks. Members that are null have a default. */
export interface PortalPage {
  readonly name: string | null;
  readonly logoUrl: string | null;
  /** `#rrggbb` */
  readonly color: string | null;
  readonly language: (typeof portalLanguages)[number] | null;
  readonly returnUrl: string | null;
}

const requirements: Readonly<Record<PortalAction, string>> = {
  list: "apis.{apiId}.read_key",
  create: "apis.{apiId}.create_key",
  reroll: "apis.{apiId}.create_key",
  rename: "apis.{apiId}.update_key",
  delete: "apis.{apiId}.delete_key",
  usage: "apis.{apiId}.read_analytics",
  // Any budget can be the one that is lacking, also those that the keys get later.
  left: "budgets.*.read_budget",
};

/** The permission of a root key that an action of a session needs. */
export function portalRequirement(action: PortalAction, apiId: string): string {
  return requirements[action].replace("{apiId}", apiId);
}

/** Every permission that a session with these terms can use. The last one only to reroll keys that are recoverable. */
export function portalGrants({ actions }: PortalTerms, apiId: string): string[] {
  const needed = actions.map((action) => portalRequirement(action, apiId));
  return [...new Set([...needed, ...(actions.includes("reroll") ? [`apis.${apiId}.encrypt_key`] : [])])];
}
