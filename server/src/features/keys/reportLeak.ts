import { z } from "zod";
import { addressNetwork } from "../../../../engine/src/rules/address.ts";
import { isWebAddress } from "../../platform/outbound/web-address.ts";
import { asSecret, Empty, text } from "../../platform/vocabulary/schema.ts";
import { leakReport } from "../leaks/reports.ts";
import { metered } from "../services.ts";

const URL_LENGTH_MAX = 2_000;

export const reportLeak = metered("keys.reportLeak", {
  summary: "Report a leaked key",
  description:
    "For everybody who finds a key where it should not be; a root key is not needed, whatever the configuration says. If " +
    "a key with this string exists, in any workspace, it is marked as leaked or disabled, as `leakAction` of its API " +
    "says, and the event `leak.reported` is sent. A root key has a `leakAction` of its own and the event `root_key.leaked`. " +
    "The answer is the same for every key string and is sent before the key is looked up, so it does not tell whether the " +
    "key exists.",
  isPublic: true,
  permissions: [],
  input: z.strictObject({
    key: asSecret(text(1, 512)).describe("The key string."),
    location: text(1, URL_LENGTH_MAX)
      .refine(isWebAddress, {
        error: "must be a URL that begins with https:// or http://, without a password",
        params: { keyword: "pattern", fix: "Send the address of the page or file with the key." },
      })
      .meta({ pattern: "^https?://" })
      .optional()
      .describe("Where the key was found. The owner of the API sees it."),
  }),
  output: Empty,
  problems: [],
  examples: [
    {
      summary: "Report a key that was found in a repository",
      input: {
        key: "3kAqEg4u4qMxCGFAVMuGsb3cijGp",
        location: "https://github.com/octocat/hello-world/blob/main/config.js",
      },
      output: {},
    },
    { summary: "Report a key", input: { key: "3kAqEg4u4qMxCGFAVMuGsb3cijGp" }, output: {} },
  ],
}).handle(({ key, location }, { leaks }, { principal, workspaceId, address }) => {
  leaks.accept(leakReport(key, "report", location ?? null), principal ? workspaceId : addressNetwork(address));
  return "{}";
});
