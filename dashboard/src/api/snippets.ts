import type { OperationName } from "./client.ts";

/** A call in the languages of the clients. */
export interface Snippets {
  readonly curl: string;
  readonly TypeScript: string;
  readonly Python: string;
  readonly Go: string;
}

/** How to make a call from a program. The root key is a variable of the environment and never part of the text. */
export function snippetsOf(operation: OperationName, input: object, url: string = location.origin): Snippets {
  const json = JSON.stringify(input, null, 2);
  const [scope = "", method = ""] = operation.split(".");
  return {
    curl: [
      `curl ${url}/v2/${operation} \\`,
      `  --header "Authorization: Bearer $LATCHKEY_ROOT_KEY" \\`,
      `  --header "Content-Type: application/json" \\`,
      `  --data '${json.replaceAll("'", `'\\''`)}'`,
    ].join("\n"),
    TypeScript: [
      `import { Latchkey } from "@latchkey/sdk";`,
      "",
      `// The root key is LATCHKEY_ROOT_KEY of the environment.`,
      `const latchkey = new Latchkey({ url: ${JSON.stringify(url)} });`,
      `const { data } = await latchkey.${operation}(${literal(input)});`,
    ].join("\n"),
    Python: [
      "from latchkey import Latchkey",
      "",
      "# The root key is LATCHKEY_ROOT_KEY of the environment.",
      `latchkey = Latchkey(${JSON.stringify(url)})`,
      `data = latchkey.${snake(scope)}.${snake(method)}(${pythonArguments(input)}).data`,
    ].join("\n"),
    Go: [
      `import latchkey "github.com/latchkey/latchkey/clients/go"`,
      "",
      "// The root key is LATCHKEY_ROOT_KEY of the environment.",
      `client, err := latchkey.New(latchkey.WithURL(${JSON.stringify(url)}))`,
      "if err != nil {",
      "\tlog.Fatal(err)",
      "}",
      `var input latchkey.${exported(SECOND_OF_ITS_VERB.has(operation) ? scope : "")}${exported(method)}Input`,
      `if err := json.Unmarshal([]byte(${goLiteral(json)}), &input); err != nil {`,
      "\tlog.Fatal(err)",
      "}",
      `result, err := client.${exported(scope)}.${exported(method)}(ctx, input)`,
    ].join("\n"),
  };
}

/** Operations whose Go types begin with their namespace, because an earlier operation has their verb. */
const SECOND_OF_ITS_VERB: ReadonlySet<OperationName> = new Set<OperationName>([
  "budgets.updateCredits",
  "events.listEvents",
  "system.listDecisions",
]);

/** An input as a literal of TypeScript: JSON without quotes around names. */
function literal(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(/^(\s*)"([A-Za-z_]\w*)":/gm, "$1$2:");
}

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function pythonArguments(input: object): string {
  if (Array.isArray(input)) return `[\n${input.map((entry) => `    ${pythonLiteral(entry)},\n`).join("")}]`;
  const parts = Object.entries(input).map(([name, value]) => `    ${snake(name)}=${pythonLiteral(value)},`);
  return parts.length === 0 ? "" : `\n${parts.join("\n")}\n`;
}

function pythonLiteral(value: unknown): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (typeof value === "object") {
    const members = Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}: ${pythonLiteral(part)}`);
    return `{${members.join(", ")}}`;
  }
  return JSON.stringify(value);
}

/** A name of the API as the Go client has it: `apis.createApi` is `APIs.CreateAPI`. */
function exported(name: string): string {
  return (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll(/Api(?=s?(?:[A-Z]|$))/g, "API");
}

/** A text as a literal of Go: a raw one, unless it has the character that ends it. */
function goLiteral(text: string): string {
  return text.includes("`") ? JSON.stringify(text) : `\`${text}\``;
}
