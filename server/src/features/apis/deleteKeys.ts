import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { deleteKey } from "../keys/deleteKey.ts";
import {
  changeMatching,
  exampleSelection,
  IN_STEPS,
  MatchingKeysOutput,
  matchingKeysInput,
  missingApi,
} from "./matching-keys.ts";

const NAME = "apis.deleteKeys";

export const deleteKeys = mutation("apis.deleteKeys", {
  summary: "Delete the keys of an API that match",
  description: `Deletes keys as \`keys.deleteKey\` does. ${IN_STEPS}`,
  permissions: ["apis.{apiId}.delete_key", "apis.{apiId}.read_key", "apis.{apiId}.read_api"],
  input: z.strictObject(matchingKeysInput(NAME)),
  output: MatchingKeysOutput,
  problems: ["api_not_found"],
  examples: [
    { summary: "Delete the keys of one owner", input: exampleSelection, output: { changed: 0, failed: [] } },
    missingApi,
  ],
}).handle((selection, context) => {
  const permanent = false;
  return changeMatching(NAME, selection, context, {
    permission: "delete_key",
    values: { permanent },
    grantsPerKey: 0,
    oncePerPool: false,
    apply: ({ id: keyId }, own) => deleteKey.handle({ keyId, permanent }, own),
  });
});
