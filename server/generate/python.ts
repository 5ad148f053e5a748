/** Writes the types and methods of the Python client from the declarations of the operations. */
import { type ClientOperation, capitalized, clientModel, nameOf, type Schema, wrapped } from "./client-model.ts";

type Direction = "input" | "output";

/** Words that cannot be names. A name that is one gets an underscore at its end. */
const keywords = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield self options"
  ).split(" "),
);

const LINE_LENGTH = 120;
const header = "# Written by `npm run generate` from the declarations of the operations.\n";
const model = clientModel();
const operations = model.namespaces.flatMap((namespace) => namespace.operations);

/** Names in the API that are different in Python. Texts name them as Python does. */
const renamed = new Map<string, string>();
const renamedWord = /(?<![\w{-])[a-z]+(?:[A-Z][a-z]*)+(?!\w)/g;

/** Members of inputs whose value is any JSON, so that their keys are not those of the API. */
const anyJson = new Set<string>();
const structured = new Set<string>();

for (const { verb, input, output } of operations) {
  pythonName(verb);
  collectNames(output);
  collectNames(input, "input");
}
for (const schema of Object.values(model.schemas)) collectNames(schema);
for (const { data } of model.events) collectNames(data);
for (const name of anyJson) {
  if (structured.has(name)) throw new Error(`${name} is any JSON in one place and an object in another: rename one.`);
}

function collectNames(schema: Schema, direction: Direction = "output"): void {
  if (schema.items) collectNames(schema.items, direction);
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    pythonName(name);
    const isObject = [member.type].flat().includes("object");
    if (direction === "input" && (isObject || member.items))
      (isObject && !member.properties ? anyJson : structured).add(name);
    collectNames(member, direction);
  }
}

/** The files of the package `latchkey` that are printed, by name. */
export function printPython(): Record<string, string> {
  return { "types.py": printTypes(), "_operations.py": printOperations() };
}

function printTypes(): string {
  const types = new Types();
  for (const [name, schema] of Object.entries(model.schemas)) types.declare(name, schema, "output");
  for (const { type, input, output } of operations) {
    if (input.type === "array") types.declare(`${type}InputEntry`, input.items!, "input");
    else types.declareMembers(`${type}Input`, input, "input");
    if (output.type === "object") types.declare(`${type}Output`, output, "output");
    if (output.items?.properties) types.declare(`${type}OutputEntry`, output.items, "output");
  }
  for (const { type, name, summary, data } of model.events) {
    types.declare(name, { ...data, description: `The data of \`${type}\`. ${summary}` }, "output");
  }
  return `${header}"""The types of inputs and answers.

Inputs are dictionaries, answers are immutable objects. Durations are in milliseconds, times are Unix times in milliseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from latchkey._secret import Secret

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired

ProblemType = Literal[
${model.errorTypes.map((type) => `    ${JSON.stringify(type)},`).join("\n")}
]
"""The errors of the service. Each has a page at \`/errors/<type>\` of the service."""

_ANY_JSON = frozenset({${[...anyJson].map((name) => JSON.stringify(name)).join(", ")}})
"""Members of inputs whose value is any JSON object."""


${types.printed.join("\n\n")}

EventData = (
${model.events.map(({ name }, i) => `    ${i > 0 ? "| " : ""}${name}`).join("\n")}
)
"""The data of an event that a webhook gets."""

_EVENTS: Mapping[str, type[EventData]] = {
${model.events.map(({ type, name }) => `    ${JSON.stringify(type)}: ${name},`).join("\n")}
}
`;
}

/** The classes of objects. An object inside of another one has the name of that one and of the member. */
class Types {
  readonly printed: string[] = [];
  readonly #names = new Set<string>();

  /** The class of an object, after those of the objects inside of it. */
  declare(name: string, schema: Schema, direction: Direction): void {
    if (this.#names.has(name)) throw new Error(`Two types of the client have the name ${name}: rename an operation.`);
    this.#names.add(name);
    this.declareMembers(name, schema, direction);
    const required = new Set(schema.required);
    const lines = Object.entries(schema.properties ?? {}).map(([member, value]) => {
      const type = typeOf(value, direction, name + capitalized(member));
      const isRequired = required.has(member);
      const line =
        direction === "input"
          ? `${pythonName(member)}: ${isRequired ? type : `NotRequired[${type}]`}`
          : `${pythonName(member)}: ${isRequired ? type : `${optional(type)} = None`}`;
      return `    ${line}\n${docstring([value.description ?? "", defaultOf(value)].filter(Boolean).join(" "), 1)}`;
    });
    const head =
      direction === "input" ? `class ${name}(TypedDict)` : `@dataclass(frozen=True, kw_only=True)\nclass ${name}`;
    const doc = docstring(schema.description ?? "", 1);
    const body =
      lines.length === 0 && doc === "" ? "    pass\n" : `${doc}${doc && lines.length > 0 ? "\n" : ""}${lines.join("")}`;
    this.printed.push(`${head}:\n${body}`);
  }

  declareMembers(name: string, schema: Schema, direction: Direction): void {
    for (const [member, value] of Object.entries(schema.properties ?? {})) {
      const inside = name + capitalized(member);
      if (value.properties) this.declare(inside, value, direction);
      if (value.items?.properties) this.declare(`${inside}Entry`, value.items, direction);
    }
  }
}

function printOperations(): string {
  const used = [...new Set(operations.flatMap(namesInSignatures))].sort();
  const constants = operations.map((operation) => {
    const { name, traits, isPaged } = operation;
    const { type, entry } = dataOf(operation);
    const members = [
      JSON.stringify(name),
      isPaged && traits.list === undefined ? `list[${entry}]` : type,
      ...(traits.repeatable ? [`repeatable=${JSON.stringify(traits.repeatable)}`] : []),
      ...(traits.list ? [`list_name=${JSON.stringify(pythonName(traits.list))}`] : []),
      ...(isPaged ? ["is_paged=True"] : []),
    ];
    return `${constantOf(operation)}: Final = Operation(${members.join(", ")})`;
  });
  return `${header}"""The operations of the service as methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from latchkey._call import AsyncCaller, CallOptions, Caller, Operation, Page, Result
from latchkey._secret import Secret
from latchkey._unset import UNSET, Unset
from latchkey.types import (
${used.map((name) => `    ${name},`).join("\n")}
)

${constants.join("\n")}


${printClasses(false)}


${printClasses(true)}
`;
}

/** The classes of all namespaces, and the one that has them as members. */
function printClasses(isAsync: boolean): string {
  const prefix = isAsync ? "Async" : "";
  const classes = model.namespaces.flatMap(({ name, description, operations }) => {
    const lists = operations.filter(({ isPaged }) => isPaged).map((operation) => printList(operation, isAsync));
    const own = operations.filter(({ isPaged }) => !isPaged).map((operation) => printMethod(operation, isAsync));
    const members = operations
      .filter(({ isPaged }) => isPaged)
      .map(({ verb, type }) => `        self.${pythonName(verb)}: Final = ${prefix}${type}(caller)\n`);
    const init = `    def __init__(self, caller: ${prefix}Caller) -> None:\n        self._caller = caller\n${members.join("")}`;
    return [
      ...lists,
      `class ${prefix}${capitalized(name)}Operations:\n${[docstring(description, 1), init, ...own].join("\n")}`,
    ];
  });
  const members = model.namespaces.map(
    ({ name }) => `        self.${pythonName(name)}: Final = ${prefix}${capitalized(name)}Operations(caller)\n`,
  );
  return `${classes.join("\n\n")}

class ${prefix}Operations:
    """The operations of the service, by namespace."""

    def __init__(self, caller: ${prefix}Caller) -> None:
${members.join("")}`.trimEnd();
}

function printMethod(operation: ClientOperation, isAsync: boolean): string {
  const { verb } = operation;
  const { type } = dataOf(operation);
  const [def, wait] = isAsync ? ["async def", "await "] : ["def", ""];
  return (
    `${signature(`${def} ${pythonName(verb)}`, operation, `Result[${type}]`)}\n${documentation(operation, 2)}` +
    `        return ${wait}self._caller.call(${constantOf(operation)}, ${body(operation, 2)}, options)\n`
  );
}

/** A list is a class: its call returns a page, and \`all\` the entries of all pages. */
function printList(operation: ClientOperation, isAsync: boolean): string {
  const { type, verb } = operation;
  const { type: data, entry } = dataOf(operation);
  const [def, wait, prefix] = isAsync ? ["async def", "await ", "Async"] : ["def", "", ""];
  const page = `${signature(`${def} __call__`, operation, `Page[${data}]`)}\n${documentation(operation, 2)}`;
  const all = signature("def all", operation, `${prefix}Iterator[${entry}]`);
  const help = `Every entry, from the page of \`cursor\` on. It gets the next page when the entries of one are used up.`;
  return `class ${prefix}${type}:
    """The operation \`${pythonName(verb)}\`: a call returns one page, \`all\` the entries of all pages."""

    def __init__(self, caller: ${prefix}Caller) -> None:
        self._caller = caller

${page}        return ${wait}self._caller.page(${constantOf(operation)}, ${body(operation, 2)}, options)

${all}
${docstring(help, 2)}        return self._caller.all(${constantOf(operation)}, ${body(operation, 2)}, options)
`;
}

function signature(start: string, { type, input }: ClientOperation, answer: string): string {
  const end = "options: CallOptions | None = None";
  if (input.type === "array") {
    return `    ${start}(self, entries: Sequence[${type}InputEntry], *, ${end}) -> ${answer}:`;
  }
  const required = new Set(input.required);
  const members = Object.entries(input.properties ?? {})
    .sort(([one], [other]) => Number(required.has(other)) - Number(required.has(one)))
    .map(([name, member]) => {
      const printed = typeOf(member, "input", `${type}Input${capitalized(name)}`);
      return required.has(name) ? `${pythonName(name)}: ${printed}` : `${pythonName(name)}: ${printed} | Unset = UNSET`;
    });
  const parts = ["self", "*", ...members, end];
  const line = `    ${start}(${parts.join(", ")}) -> ${answer}:`;
  if (line.length <= LINE_LENGTH) return line;
  return `    ${start}(\n${parts.map((part) => `        ${part},\n`).join("")}    ) -> ${answer}:`;
}

/** The body of the call, with the names of the API. */
function body({ input }: ClientOperation, depth: number): string {
  if (input.type === "array") return "entries";
  const members = Object.keys(input.properties ?? {}).map((name) => `${JSON.stringify(name)}: ${pythonName(name)}`);
  const line = `{${members.join(", ")}}`;
  if (line.length <= 60) return line;
  const indent = "    ".repeat(depth + 1);
  return `{\n${members.map((member) => `${indent}${member},\n`).join("")}${"    ".repeat(depth)}}`;
}

function documentation(operation: ClientOperation, depth: number): string {
  const { summary, description, permissions, errors, hasCommonErrors, input } = operation;
  const width = LINE_LENGTH - 4 * depth;
  const paragraph = (text: string) => wrapped(asPython(text), width).join("\n");
  const members = Object.entries(input.properties ?? {}).flatMap(([name, member]) => {
    const help = [member.description ?? "", defaultOf(member)].filter(Boolean).join(" ");
    if (help === "") return [];
    return wrapped(`${pythonName(name)}: ${asPython(help)}`, width - 8).map(
      (line, i) => `${i === 0 ? "    " : "        "}${line}`,
    );
  });
  const common = hasCommonErrors ? " Besides the errors of every operation." : "";
  const parts = [
    paragraph(summary),
    paragraph(description),
    paragraph(`Permissions of the root key: ${permissions.map(quoted).join(", ")}`),
    ...(members.length > 0 ? [`Args:\n${members.join("\n")}`] : []),
    ...(errors.length > 0
      ? [
          `Raises:\n${wrapped(`LatchkeyError: ${errors.map(quoted).join(", ")}.${common}`, width - 8)
            .map((line, i) => `${i === 0 ? "    " : "        "}${line}`)
            .join("\n")}`,
        ]
      : []),
  ];
  return docstring(parts.join("\n\n"), depth, true);
}

/** The type of the data of an answer, and that of an entry of a list. */
function dataOf({ type, output, traits: { list } }: ClientOperation): { type: string; entry: string } {
  if (output.type === "array") {
    const entry = typeOf(output.items!, "output", `${type}OutputEntry`);
    return { type: `list[${entry}]`, entry };
  }
  const data = output.$ref ? nameOf(output.$ref) : `${type}Output`;
  const entry = list ? typeOf(output.properties![list]!.items!, "output", `${data}${capitalized(list)}Entry`) : data;
  return { type: data, entry };
}

/** The types that the signatures of an operation name. */
function namesInSignatures(operation: ClientOperation): string[] {
  const { type, entry } = dataOf(operation);
  const text = `${signature("", operation, "")} ${type} ${operation.isPaged ? entry : ""}`;
  const withoutLiterals = text.replaceAll(/"[^"]*"/g, "");
  return [...withoutLiterals.matchAll(/\b[A-Z]\w+/g)]
    .map(([name]) => name)
    .filter(
      (name) =>
        !["Sequence", "Mapping", "Any", "Literal", "Secret", "Unset", "UNSET", "CallOptions", "None"].includes(name),
    );
}

/** A value as Python writes it. */
function literal(value: unknown): string {
  if (value === true) return "True";
  return value === false ? "False" : JSON.stringify(value);
}

/** A schema as a type of Python. */
function typeOf(schema: Schema, direction: Direction, inside: string): string {
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`;
  if (schema.enum) return `Literal[${schema.enum.map(literal).join(", ")}]`;
  if (schema.anyOf) return [...new Set(schema.anyOf.map((each) => typeOf(each, direction, inside)))].join(" | ");
  const { type } = schema;
  if (Array.isArray(type)) return type.map((each) => typeOf({ ...schema, type: each }, direction, inside)).join(" | ");
  switch (type) {
    case "null":
      return "None";
    case "string":
      if (schema.format !== "password") return "str";
      return direction === "input" ? "str | Secret" : "Secret";
    case "integer":
      return "int";
    case "number":
      return "float";
    case "boolean":
      return "bool";
    case "array": {
      const item = typeOf(schema.items!, direction, `${inside}Entry`);
      return direction === "input" ? `Sequence[${item}]` : `list[${item}]`;
    }
    case "object": {
      if (schema.properties) return inside;
      const { additionalProperties: values } = schema;
      const value = typeof values === "object" ? typeOf(values, direction, `${inside}Value`) : "Any";
      return direction === "input" ? `Mapping[str, ${value}]` : `dict[str, ${value}]`;
    }
    default:
      throw new Error(`A schema has the type ${JSON.stringify(type)}, for which the client has none.`);
  }
}

function optional(type: string): string {
  return type.split(" | ").includes("None") ? type : `${type} | None`;
}

function constantOf({ name }: ClientOperation): string {
  return `_${name.split(".").map(snake).join("_").toUpperCase()}`;
}

function defaultOf({ default: value }: Schema): string {
  if (value === undefined) return "";
  return `Default: ${literal(value)}.`;
}

/** The name of a member or operation of the API in Python. The client turns it back by a rule. */
function pythonName(name: string): string {
  const found = keywords.has(snake(name)) ? `${snake(name)}_` : snake(name);
  const back = found.replace(/_$/, "").replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  if (back !== name) throw new Error(`The client would send ${back} instead of ${name}: rename the member.`);
  if (found !== name) renamed.set(name, found);
  return found;
}

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A text of a declaration with the names that Python has. */
function asPython(text: string): string {
  return text.replaceAll(renamedWord, (word) => renamed.get(word) ?? word);
}

function quoted(text: string): string {
  return `\`${text}\``;
}

/** A docstring; nothing for an empty text. */
function docstring(text: string, depth: number, isWrapped = false): string {
  if (text === "") return "";
  const indent = "    ".repeat(depth);
  const escaped = (isWrapped ? text : asPython(text)).replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"');
  const lines = isWrapped ? escaped.split("\n") : wrapped(escaped, LINE_LENGTH - indent.length - 3);
  if (lines.length === 1 && lines[0]!.length + indent.length + 6 <= LINE_LENGTH && !escaped.endsWith('"')) {
    return `${indent}"""${escaped}"""\n`;
  }
  const [first, ...others] = lines;
  return `${[`${indent}"""${first}`, ...others.map((line) => (indent + line).trimEnd()), `${indent}"""`].join("\n")}\n`;
}
