/** Whether the `Accept` header (RFC 9110, 12.5.1) prefers JSON to HTML. Without a preference the response is HTML. */
export function prefersJson(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  let [json, page] = [0, 0];
  for (const part of accept.split(",")) {
    const [type, ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith("q="));
    const weight = quality === undefined ? 1 : Number(quality.slice(2)) || 0;
    if (type === "application/json" || type === "application/problem+json") json = Math.max(json, weight);
    if (type === "text/html") page = Math.max(page, weight);
  }
  return json > page;
}

/** Whether the `Accept-Encoding` header (RFC 9110, 12.5.3) allows a coding. */
export function acceptsCoding(acceptEncoding: string | undefined, wanted: "br" | "gzip"): boolean {
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
