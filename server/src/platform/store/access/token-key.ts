import type { SecretSource } from "../../../../../engine/src/crypto/secret.ts";
import type { Sql } from "../store.ts";

const BYTES = 32;

/** The key that signs tokens of sessions: see `engine/src/rules/session-token.ts`. Creates it at the first start. */
export async function ensureTokenKey(sql: Sql, secrets: SecretSource): Promise<string> {
  const key = Buffer.from(secrets(BYTES)).toString("base64url");
  await sql.db
    .insertInto("token_key")
    .values({ id: 1, key })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return findTokenKey(sql);
}

/** The key, which every start creates before the first session. */
export async function findTokenKey(sql: Sql): Promise<string> {
  return (await sql.db.selectFrom("token_key").select("key").executeTakeFirstOrThrow()).key;
}
