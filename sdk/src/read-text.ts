const BYTES_MAX = 16 * 2 ** 20;

/** The body of an answer as text; undefined if it is longer than 16 MiB, and it is then not read to its end. */
export async function readText({ body }: Response): Promise<string | undefined> {
  if (!body) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > BYTES_MAX) {
      reader.cancel().catch(() => {});
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}
