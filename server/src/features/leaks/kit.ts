import { formatKey, KEY_TEXT_LENGTH_MAX, KEY_TEXT_LENGTH_MIN } from "../../../../engine/src/rules/key-string.ts";

/** What finds the keys of one prefix in texts, in the formats of the tools that scan for secrets. */
export interface LeakKit {
  prefix: string;
  /** A regular expression in the common subset of RE2, Hyperscan, PCRE and JavaScript. The match is the key. */
  regex: string;
  /** A rule of gitleaks, in TOML. */
  gitleaks: string;
  /** A custom detector of TruffleHog, in YAML. */
  trufflehog: string;
  /** What GitHub's secret scanning partner program needs. */
  github: {
    /** The name of the secret type, which each report repeats. */
    type: string;
    regex: string;
    /** Where GitHub sends its reports. */
    endpoint: string;
    /** A text that matches. It is no key. */
    sample: string;
  };
}

/** Base58 as a character class. */
const BASE58 = "[1-9A-HJ-NP-Za-km-z]";

/** Where scanners ask whether a key that they found is live. */
export const LEAK_VERIFICATION_PATH = "/leaks/verify";

/** Where GitHub sends its reports. */
export const GITHUB_REPORTS_PATH = "/leaks/github";

/** The address in kits of a service that does not know its own. */
export const EXAMPLE_PUBLIC_URL = "https://keys.example.com";

const SAMPLE_BYTES = Uint8Array.from({ length: 16 }, (_, i) => 16 * (i + 1) - 1);

/**
 * The kit of a prefix.
 *
 * @param prefix 1 to 16 letters, digits, underscores, dots and hyphens.
 * @param publicUrl the address of the service, without a slash at its end.
 */
export function leakKit(prefix: string, publicUrl: string): LeakKit {
  const regex = leakRegex(prefix);
  const name = `${prefix.replaceAll(/[^A-Za-z0-9]/g, "_")}_api_key`;
  return {
    prefix,
    regex,
    gitleaks: gitleaksRule(prefix, regex),
    trufflehog: truffleHogDetector(name, prefix, regex, publicUrl),
    github: {
      type: name.toLowerCase(),
      regex,
      endpoint: `${publicUrl}${GITHUB_REPORTS_PATH}`,
      sample: formatKey(prefix, SAMPLE_BYTES).key,
    },
  };
}

/**
 * Matches every key with this prefix that the service creates, whatever its number of random bytes. A text with another
 * character than base58 has, or that is too short or too long, does not match. The checksum is beyond regular expressions.
 *
 * It has one repetition, of a class without the underscore that ends the prefix, so that it needs linear time in engines
 * that backtrack too.
 */
function leakRegex(prefix: string): string {
  // Between two characters that are both no part of a word there is no boundary `\b`.
  const start = /^\w/.test(prefix) ? "\\b" : "\\B";
  return `${start}${prefix.replaceAll(".", "\\.")}_${BASE58}{${KEY_TEXT_LENGTH_MIN},${KEY_TEXT_LENGTH_MAX}}\\b`;
}

function gitleaksRule(prefix: string, regex: string): string {
  return `[[rules]]
id = "latchkey-${prefix}"
description = "API key that begins with ${prefix}_"
regex = '''${regex}'''
keywords = ["${prefix.toLowerCase()}_"]
`;
}

function truffleHogDetector(name: string, prefix: string, regex: string, publicUrl: string): string {
  // TruffleHog rejects an address without encryption unless it is marked.
  const mark = publicUrl.startsWith("https:") ? "" : "\n        unsafe: true";
  return `detectors:
  - name: ${name}
    keywords:
      - "${prefix}_"
    regex:
      key: '${regex}'
    verify:
      - endpoint: ${publicUrl}${LEAK_VERIFICATION_PATH}${mark}
`;
}
