import type {
  CreateBudgetInput,
  CreatePermissionInput,
  CreateRoleInput,
  SetDescriptorsInput,
  SetOverrideInput,
  UpdateApiInput,
  UpdateRootKeyInput,
} from "../../../sdk/src/index.ts";
import type { DocumentPlan } from "./plans.ts";

/** What a service should have. A section that is absent is left alone. Its members are those of the operations. */
export interface Document {
  permissions?: readonly DocumentPermission[] | undefined;
  roles?: readonly CreateRoleInput[] | undefined;
  namespaces?: readonly DocumentNamespace[] | undefined;
  apis?: readonly DocumentApi[] | undefined;
  budgets?: readonly DocumentBudget[] | undefined;
  plans?: readonly DocumentPlan[] | undefined;
  rootKeys?: readonly DocumentRootKey[] | undefined;
}

type DocumentPermission = Omit<CreatePermissionInput, "name"> & { name?: string | undefined };
export type DocumentApi = Omit<UpdateApiInput, "apiId" | "upstream"> & {
  name: string;
  upstream?: DocumentUpstream | null | undefined;
};

/** An upstream verifier. The service never returns the values of its headers, so an exported one has none. */
export type DocumentUpstream = Omit<NonNullable<UpdateApiInput["upstream"]>, "headers"> & {
  headers: readonly { readonly name: string; readonly value?: string | undefined }[];
};

export interface DocumentNamespace {
  name: string;
  overrides?: readonly Omit<SetOverrideInput, "namespace">[] | undefined;
  /** Limits by descriptors, in the form of envoyproxy/ratelimit. */
  descriptors?: SetDescriptorsInput["descriptors"] | undefined;
  /** How calls are counted with them. */
  atomic?: boolean | undefined;
  metadata?: boolean | undefined;
}

/** A budget. `remaining` is what a new one begins with, and `parent` the name of its parent. */
export type DocumentBudget = Omit<CreateBudgetInput, "parentId"> & { parent?: string | undefined };

export interface DocumentRootKey {
  name: string;
  /** Ids in them can be written as names. */
  permissions: readonly string[];
  enabled?: boolean | undefined;
  expires?: number | undefined;
  leakAction?: UpdateRootKeyInput["leakAction"];
}

export const sections = ["permissions", "roles", "namespaces", "apis", "budgets", "plans", "rootKeys"] as const;
export type Section = (typeof sections)[number];

/** A document with all sections. */
export type WholeDocument = { [Name in Section]: NonNullable<Document[Name]> };
