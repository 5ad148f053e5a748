/** Whether JSON is wanted rather than a page, by the `Accept` header (RFC 9110, 12.5.1). Who names neither gets the page. */
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
