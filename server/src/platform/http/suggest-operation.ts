import { didYouMean, nearestNames } from "../../../../engine/src/rules/spelling.ts";
import { pathOf } from "../rpc/operation.ts";

/** Paths that resemble one of an operation: with another version, two versions or none, with a slash at the end or for the dot. */
const OPERATION_PATH = /^(?:\/api)?(?:\/v\d){0,2}\/([A-Za-z]{1,32})[./]([A-Za-z_-]{1,32})\/?$/;

/**
 * Makes a function that returns "Did you mean …?" with the operations whose path is most similar to an unknown one; an empty
 * text if there is none. Anybody can send unknown paths, so it compares the namespace first, and then only the operations of
 * the most similar namespaces.
 */
export function suggestOperation(names: readonly string[]): (path: string) => string {
  const members = new Map<string, string[]>();
  for (const name of names) {
    const [namespace = "", member = ""] = name.split(".");
    members.set(namespace, [...(members.get(namespace) ?? []), member]);
  }
  return (path) => {
    const [, namespace = "", member = ""] = OPERATION_PATH.exec(path) ?? [];
    for (const near of nearestNames(namespace, members.keys())) {
      const question = didYouMean(member, members.get(near) ?? [], (one) => `POST ${pathOf(`${near}.${one}`)}`);
      if (question !== "") return question;
    }
    return "";
  };
}
