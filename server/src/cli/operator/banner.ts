import type { IssuedRootKey } from "../../features/workspaces/procedures.ts";

export interface BannerOptions {
  url: string;
  /** The root key that this start made. */
  issued: IssuedRootKey | undefined;
  /** A file that holds the administrator's root key. */
  rootKeyFile: string | undefined;
  /** Whether the configuration gives a root key. */
  given: boolean;
  /** Signs in to the dashboard once. */
  signInLink?: string | undefined;
  /** The shell command that runs this program from the current folder. */
  program: string;
}

/** The text that a start prints: the address of the service, and three shell lines that verify a key. */
export function banner({ url, issued, rootKeyFile, given, signInLink, program }: BannerOptions): string {
  const rootKey = rootKeyFile ? `$(cat ${quoted(rootKeyFile)})` : given ? "$LATCHKEY_ROOT_KEY" : issued?.key;
  return [
    "",
    `  Latchkey is ready at ${url}`,
    "",
    ...rootKeyNotice(issued, rootKeyFile, given, program),
    "",
    ...(signInLink === undefined
      ? []
      : [
          "  Open the dashboard on this machine. The link signs in once, within 10 minutes:",
          "",
          `  ${signInLink}`,
          "",
        ]),
    // The lines need a root key.
    ...(rootKey === undefined
      ? []
      : ["  Create an API, create a key in it, verify the key:", "", ...lines(url, rootKey), ""]),
  ].join("\n");
}

/** A path for the shell, quoted only where that is needed. */
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
      "  It is shown only once, and the database has only its hash. Store it with your secrets.",
    ];
  }
  return [
    "  The administrator's root key was shown at the first start. This command creates another one, with the same settings:",
    "",
    `  ${program} root-key create --name administrator --permissions '*'`,
  ];
}

/** The lines pass results in shell variables, so they work when pasted. */
function lines(url: string, rootKey: string): string[] {
  const call = (operation: string, body: string) =>
    `curl -s ${url}/v2/${operation} -H "Authorization: Bearer ${rootKey}" -H "Content-Type: application/json" -d ${body}`;
  const extract = (name: string) => `sed -n 's/.*"${name}":"\\([^"]*\\)".*/\\1/p'`;
  return [
    `  API=$(${call("apis.createApi", `'{"name":"my-api"}'`)} | ${extract("apiId")}); echo $API`,
    `  KEY=$(${call("keys.createKey", `"{\\"apiId\\":\\"$API\\",\\"prefix\\":\\"prod\\"}"`)} | ${extract("key")}); echo $KEY`,
    `  ${call("keys.verifyKey", `"{\\"key\\":\\"$KEY\\"}"`)}; echo`,
  ];
}
