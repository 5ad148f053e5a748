import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import { ApiId, Prefix } from "../../platform/vocabulary/schema.ts";
import { EXAMPLE_PUBLIC_URL, leakKit } from "../leaks/kit.ts";
import { ApiReader } from "./statements.ts";

const PREFIXES_MAX = 20;

const LeakKitOutput = z.strictObject({
  prefix: z.string(),
  regex: z
    .string()
    .describe("Matches every key with the prefix. For RE2, Hyperscan, PCRE and JavaScript; needs linear time."),
  gitleaks: z.string().describe("A rule of gitleaks, in TOML."),
  trufflehog: z.string().describe("A custom detector of TruffleHog with the address that verifies, in YAML."),
  github: z
    .strictObject({
      type: z.string().describe("A name of the secret type."),
      regex: z.string(),
      endpoint: z.string().describe("Where GitHub sends its reports."),
      sample: z.string().describe("A text that matches. It is no key."),
    })
    .describe("What GitHub's secret scanning partner program needs."),
});

export const getLeakKit = query("apis.getLeakKit", {
  summary: "Get what finds leaked keys of an API",
  description:
    "For each prefix of its keys, a regular expression, and the same as a rule of gitleaks, as a detector of TruffleHog and " +
    "for GitHub's secret scanning. A prefix belongs to the key, not to the API: without `prefixes`, the kit is for the " +
    "default prefix of the API. Keys without a prefix cannot be told from other texts. Addresses in the kit begin with " +
    `\`LATCHKEY_PUBLIC_URL\`, or with \`${EXAMPLE_PUBLIC_URL}\` if the service has none.`,
  permissions: ["apis.{apiId}.read_api"],
  input: z.strictObject({
    apiId: ApiId,
    prefixes: z
      .array(Prefix)
      .min(1)
      .max(PREFIXES_MAX)
      .optional()
      .describe("The prefixes that your calls of `keys.createKey` set. Omitted: the default prefix of the API."),
  }),
  output: z.strictObject({ apiId: z.string(), kits: z.array(LeakKitOutput) }),
  problems: ["api_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Get the kit of the prefix prod",
      input: { apiId: exampleApi.apiId, prefixes: ["prod"] },
      output: { apiId: exampleApi.apiId, kits: [leakKit("prod", EXAMPLE_PUBLIC_URL)] },
    },
    {
      summary: "An API without a default prefix",
      input: { apiId: exampleApi.apiId },
      problem: "precondition_failed",
      detail: noPrefix(),
    },
    {
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM" },
      problem: "api_not_found",
    },
  ],
}).handle(async ({ apiId, prefixes }, { store, principal, publicUrl, fail }) => {
  principal.authorize(`apis.${apiId}.read_api`);
  const api = await store.of(ApiReader).find(apiId);
  if (!api) return fail("api_not_found");
  if (!prefixes && api.prefix === null) return fail("precondition_failed", noPrefix());
  const wanted = new Set(prefixes ?? [api.prefix!]);
  return { apiId, kits: [...wanted].map((prefix) => leakKit(prefix, publicUrl || EXAMPLE_PUBLIC_URL)) };
});

function noPrefix(): string {
  return "The API has no default prefix: set it with apis.updateApi, or send the prefixes of its keys in `prefixes`.";
}
