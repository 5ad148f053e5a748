import type { Sql } from "../../platform/store/store.ts";
import { IdentityReader } from "../identities/statements.ts";
import { KeyReader } from "../keys/statements/keys.ts";

/** Keys or identities of a workspace. */
export interface Subjects {
  workspaceId: string;
  by: "key" | "identity";
  ids: readonly string[];
}

/** The procedures of names in answers. */
export const nameProcedures = {
  reading: {
    names: (sql: Sql, subjects: Subjects) => findNames(sql, subjects),
  },
  writing: {},
};

/** The names of the keys or identities that exist, as members of an answer. */
async function findNames(sql: Sql, { workspaceId, by, ids }: Subjects): Promise<({ id: string } & object)[]> {
  if (by === "identity") {
    const identities = await new IdentityReader(sql, workspaceId).names(ids);
    return identities.map(({ id, external_id }) => ({ id, externalId: external_id }));
  }
  const keys = await new KeyReader(sql, workspaceId).names(ids);
  return keys.map(({ id, api_id, start, name, external_id }) => ({
    id,
    apiId: api_id,
    start,
    ...(name !== null && { name }),
    ...(external_id !== null && { externalId: external_id }),
  }));
}
