import { readFileSync } from "node:fs";
import { GithubKeys, githubKeysFile, parseGithubKeys } from "../features/leaks/github-keys.ts";
import { OperatorError } from "../log/operator-error.ts";
import { OutboundClient } from "../platform/outbound/client.ts";
import type { Parts, Start } from "./open.ts";

const FETCH = { timeout: 5_000, answerBytesMax: 64 * 1024, requestsPerHost: 1, requestsMax: 1 };

/**
 * The public keys of GitHub from the place that the configuration names; undefined if it names none.
 *
 * @throws {OperatorError} if it names a file without such keys. An address is read at the first report.
 */
export function openGithubKeys(
  { config: { githubKeys: place }, clock, opened }: Start,
  { outbound }: Pick<Parts, "outbound">,
): GithubKeys | undefined {
  if (place === undefined) return undefined;
  if (!place.startsWith("https:")) {
    try {
      parseGithubKeys(readFileSync(place, "utf8"));
    } catch (error) {
      throw new OperatorError(
        `LATCHKEY_GITHUB_KEYS=${place}: give https://api.github.com/meta/public_keys/secret_scanning, or a file with ` +
          `its answer: ${(error as Error).message.split("\n")[0]}`,
        { cause: error },
      );
    }
    return new GithubKeys(clock, githubKeysFile(place));
  }
  // The operator chose the address, so it may be in the network of the service.
  const client = new OutboundClient({ clock, transport: outbound, allowPrivate: true, ...FETCH });
  opened.defer(() => client.close());
  return new GithubKeys(clock, async () => {
    const headers = { accept: "application/json", "user-agent": "latchkey" };
    const { status, body, isComplete } = await client.send({ url: place, method: "GET", headers });
    if (status !== 200 || !isComplete) throw new Error(`${place} answered ${status}`);
    return body.toString();
  });
}
