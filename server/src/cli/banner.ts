import type { IssuedRootKey } from "../store/administration/procedures.ts";

export interface BannerOptions {
  url: string;
  /** The root key that this start made. */
  issued: IssuedRootKey | undefined;
  /** A file that holds the administrator's root key. */
  rootKeyFile: string | undefined;
  /** Whether the configuration gave one. */
  given: boolean;
  /** How the program is called from here. */
  program: string;
}

/** What a person sees who has just started the service: where it is, and three lines that verify a key. */
export function banner({ url, issued, rootKeyFile, given, program }: BannerOptions): string {
  const rootKey = rootKeyFile ? `$(cat ${quoted(rootKeyFile)})` : given ? "$LATCHKEY_ROOT_KEY" : issued?.key;
  return [
    "",
    `  Latchkey is ready at ${url}`,
    "",
    ...rootKeyNotice(issued, rootKeyFile, given, program),
    "",
    // Without a root key at hand the lines could not work.
    ...(rootKey === undefined
      ? []
      : ["  Create an API, create a key in it, verify the key:", "", ...lines(url, rootKey), ""]),
  ].join("\n");
}

/** A path as the shell reads it back, quoted only where that is needed. */
export function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function rootKeyNotice(
  issued: IssuedRootKey | undefined,
  file: string | undefined,
  given: boolean,
  program: string,
): string[] {
  if (given) return ["  The administrator's root key is the one in the configuration."];
  if (file) return [`  The administrator's root key is in ${file}`];
  if (issued) {
    return [
      `  The administrator's root key: ${issued.key}`,
      "  It is shown this once; only a hash of it is kept. Put it where you keep secrets.",
    ];
  }
  return [
    "  The administrator's root key was shown at the first start. This makes another one, with the settings of this service:",
    "",
    `  ${program} root-key create --name administrator --permissions '*'`,
  ];
}

/** The lines carry on from one another through the shell's variables, so that they can be pasted as they are. */
function lines(url: string, rootKey: string): string[] {
  const call = (operation: string, body: string) =>
    `curl -s ${url}/v2/${operation} -H "Authorization: Bearer ${rootKey}" -H "Content-Type: application/json" -d ${body}`;
  const take = (name: string) => `sed -n 's/.*"${name}":"\\([^"]*\\)".*/\\1/p'`;
  return [
    `  API=$(${call("apis.createApi", `'{"name":"my-api"}'`)} | ${take("apiId")}); echo $API`,
    `  KEY=$(${call("keys.createKey", `"{\\"apiId\\":\\"$API\\",\\"prefix\\":\\"prod\\"}"`)} | ${take("key")}); echo $KEY`,
    `  ${call("keys.verifyKey", `"{\\"key\\":\\"$KEY\\"}"`)}; echo`,
  ];
}
