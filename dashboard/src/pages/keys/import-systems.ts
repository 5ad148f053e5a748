/** A system whose keys `latchkey import` maps: how they are exported, and what becomes of them. */
export interface ExportedSystem {
  readonly label: string;
  /** The file that is imported, as the export names it. */
  readonly file: string;
  /** The commands that make the file. */
  readonly exportedBy?: string;
  /** What is not obvious about the export, and what becomes of its keys. */
  readonly note: string;
  /** Further options of the import. */
  readonly options?: string;
  /** Whether the keys of one API of that system are chosen. `must`: there is no import without. */
  readonly sourceApi?: "may" | "must";
}

/** The systems by their names for `--from`. */
export const exportedSystems = {
  unkey: {
    label: "Unkey, through its API",
    file: "keys.jsonl",
    note: "The file unkey-root-key has a root key of Unkey with api.*.read_key, api.*.read_api and api.*.decrypt_key. Unkey gives the strings of recoverable keys only. If you run Unkey yourself, take a dump of its database.",
    options: "--source-key-file unkey-root-key",
    sourceApi: "must",
  },
  "unkey-dump": {
    label: "Unkey, a dump of its database",
    file: "unkey.sql",
    exportedBy: "mysqldump --single-transaction unkey > unkey.sql",
    note: "Roles, permissions, limits and owners come along. Deleted keys and root keys are skipped.",
    sourceApi: "may",
  },
  "better-auth": {
    label: "Better Auth",
    file: "apikey.sql",
    exportedBy: `pg_dump --table=apikey --file=apikey.sql "$DATABASE_URL"`,
    note: "A dump of the whole database, and the table apikey as CSV or JSON, can be imported too. Permissions become resource.action, remaining and refills become credits. Refills must be hourly, daily, weekly or monthly.",
  },
  litellm: {
    label: "LiteLLM",
    file: "litellm.sql",
    exportedBy: `pg_dump --table='"LiteLLM_VerificationToken"' --file=litellm.sql "$DATABASE_URL"`,
    note: "A dump of the whole database, and this table as CSV or JSON, can be imported too. rpm_limit becomes a limit. Budgets, models and spend become metadata, which nothing enforces.",
  },
  kong: {
    label: "Kong, key-auth",
    file: "kong.yaml",
    exportedBy: "deck gateway dump --output-file kong.yaml",
    note: "The consumer becomes the owner, and its rate limits become limits. Give groups of the plugin ACL as permissions or roles.",
  },
  tyk: {
    label: "Tyk",
    file: "tyk.jsonl",
    exportedBy: [
      'get() { curl -s -H "x-tyk-authorization: $TYK_SECRET" "http://127.0.0.1:8080/tyk/keys$1"; }',
      `get "" | jq -r '.keys[]' | while read -r id; do`,
      `  get "/$id?hashed=true" | jq -c --arg id "$id" '{key_hash: $id, session: .}'`,
      "done > tyk.jsonl",
    ].join("\n"),
    note: "Only keys that Tyk stores as strings or as SHA-256 can be verified here. Rates and quotas become limits.",
    sourceApi: "may",
  },
  aws: {
    label: "Amazon API Gateway",
    file: "api-keys.json",
    exportedBy: [
      "aws apigateway get-api-keys --include-values > api-keys.json",
      "aws apigateway get-usage-plans > plans.json",
      "for plan in $(aws apigateway get-usage-plans --query 'items[].id' --output text); do",
      `  aws apigateway get-usage-plan-keys --usage-plan-id "$plan" \\`,
      `    --query "{usagePlanId: '$plan', items: items}" > "plan-$plan.json"`,
      "done",
    ].join("\n"),
    note: "The throttle of a usage plan becomes a limit, and a quota per day or month becomes credits with that refill.",
    options: "--with plans.json plan-*.json",
    sourceApi: "may",
  },
  generic: {
    label: "Any other system: CSV, JSON or a list of keys",
    file: "keys.csv",
    note: "For more rows or bytes than a browser takes, and for hashes that are no SHA-256: add --algorithm with sha512, hmac-sha256 or prefixed-api-key.",
  },
} as const satisfies Record<string, ExportedSystem>;

export type SystemName = keyof typeof exportedSystems;

/** The command that imports the keys of a system. `url`: the address of this service. A dry run does not call it. */
export function importCommand(
  from: SystemName,
  { apiId, sourceApi, url }: { apiId: string; sourceApi: string; url: string },
  isDryRun: boolean,
): string {
  const system: ExportedSystem = exportedSystems[from];
  const chosen = sourceApi === "" && system.sourceApi === "must" ? "THEIR_API_ID" : sourceApi;
  return [
    `latchkey import ${system.file} --from ${from}`,
    `--api-id ${apiId}`,
    ...(system.sourceApi && chosen !== "" ? [`--source-api ${quoted(chosen)}`] : []),
    ...(system.options ? [system.options] : []),
    isDryRun ? "--dry-run" : `--url ${url}`,
  ].join(" \\\n  ");
}

/** A text as one word of a shell. */
function quoted(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
