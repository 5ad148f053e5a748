import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { acceptsCoding } from "../../platform/http/pages/accept.ts";
import type { Answer } from "../../platform/http/respond.ts";

/** Shorter answers fit in one packet anyway. */
const BYTES_MIN = 1_024;
/** As fast as gzip, and smaller. */
const BROTLI_QUALITY = 4;

const coders = {
  br: (body: string) =>
    promisify(brotliCompress)(body, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
      },
    }),
  gzip: (body: string) => promisify(gzip)(body),
};

/**
 * The answer of an operation that reads, compressed if it is long and the client accepts that. The threads of libuv do it.
 *
 * The length of a compressed text says something about its content, and with texts of an attacker in it an observer could
 * find a secret beside them (BREACH). So answers with a secret stay as they are: those of operations that create, which
 * are not passed here, and keys that are shown decrypted. Besides, only pages of this origin can make calls with a session.
 * For that reason the API without sessions compresses nothing: it cannot tell what its callers put into its answers.
 */
export async function compress(answer: Answer, acceptEncoding: string | undefined): Promise<Answer> {
  const { body, headers } = answer;
  if (typeof body !== "string" || body.length < BYTES_MIN || body.includes('"plaintext":')) return answer;
  const coding = (["br", "gzip"] as const).find((one) => acceptsCoding(acceptEncoding, one));
  if (coding === undefined) return answer;
  return {
    ...answer,
    body: await coders[coding](body),
    headers: { ...headers, "Content-Encoding": coding, Vary: "Accept-Encoding" },
  };
}
