// Shows the sources in stack traces of the bundle. Node's `--enable-source-maps` would read every source map at the start.
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { fileURLToPath } from "node:url";

const here = new URL("./", import.meta.url).href;

/** Source maps by the URL of their file; null if a file has none. */
const maps = new Map();

Error.prepareStackTrace = (error, frames) => {
  const places = frames.map((frame) => `\n    at ${String(frame).replace(/file:.*?(?=\)?$)/, original)}`);
  let title;
  try {
    title = Error.prototype.toString.call(error);
  } catch {
    title = "Error";
  }
  return title + places.join("");
};

/** The place in the sources of a place `<URL>:<line>:<column>` in the bundle; the same place if it has none. */
function original(place) {
  const [, url, line, column] = /^(.*):(\d+):(\d+)$/.exec(place) ?? [];
  if (!url?.startsWith(here)) return place;
  const entry = mapOf(url)?.findEntry(line - 1, column - 1);
  if (entry?.originalSource === undefined) return place;
  return `${fileURLToPath(new URL(entry.originalSource, url))}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
}

function mapOf(url) {
  if (!maps.has(url)) {
    try {
      maps.set(url, new SourceMap(JSON.parse(readFileSync(new URL(`${url}.map`), "utf8"))));
    } catch {
      maps.set(url, null);
    }
  }
  return maps.get(url);
}
