/** Whether the `Accept` header (RFC 9110, 12.5.1) prefers JSON to HTML. Without a preference the response is HTML. */
export function prefersJson(accept: string | undefined): boolean {
  return prefers(accept, ["application/json", "application/problem+json"]);
}

/** Whether the `Accept` header prefers one of these types to HTML. Without a preference the response is HTML. */
export function prefers(accept: string | undefined, types: readonly string[]): boolean {
  if (accept === undefined) return false;
  let [wanted, page] = [0, 0];
  for (const part of accept.split(",")) {
    const [type = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith("q="));
    const weight = quality === undefined ? 1 : Number(quality.slice(2)) || 0;
    if (types.includes(type)) wanted = Math.max(wanted, weight);
    if (type === "text/html") page = Math.max(page, weight);
  }
  return wanted > page;
}

/** Whether the `Accept-Encoding` header (RFC 9110, 12.5.3) allows a coding. */
export function acceptsCoding(acceptEncoding: string | undefined, wanted: string): boolean {
  if (acceptEncoding === undefined) return false;
  let any = 0;
  for (const part of acceptEncoding.split(",")) {
    const [coding, ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith("q="));
    const weight = quality === undefined ? 1 : Number(quality.slice(2)) || 0;
    if (coding === wanted || (coding === "x-gzip" && wanted === "gzip")) return weight > 0;
    if (coding === "*") any = weight;
  }
  return any > 0;
}
