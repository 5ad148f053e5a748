import { aws } from "./aws.ts";
import { betterAuth } from "./better-auth.ts";
import { generic } from "./generic.ts";
import { kong } from "./kong.ts";
import { litellm } from "./litellm.ts";
import type { Source } from "./source.ts";
import { tyk } from "./tyk.ts";
import { unkey, unkeyDump } from "./unkey.ts";

export const sourceNames = ["unkey", "unkey-dump", "better-auth", "litellm", "kong", "tyk", "aws", "generic"] as const;
export type SourceName = (typeof sourceNames)[number];

/** The systems that `--from` names. */
export const sources: Readonly<Record<SourceName, Source>> = {
  unkey,
  "unkey-dump": unkeyDump,
  "better-auth": betterAuth,
  litellm,
  kong,
  tyk,
  aws,
  generic,
};
