import { type DeclaredCommand, declaredCommand } from "../../../cli/src/declared.ts";
import { EXAMPLE_URL } from "../../src/reader/example-url.ts";
import type { OperationData } from "../../src/reader/examples.ts";
import { type ExampleLanguage, examplesOf, highlightLanguages } from "../../src/reader/examples.ts";
import { Html, html } from "./html.ts";
import { filterField, type NavigationGroup, rootFrom } from "./layout.ts";
import { type Passage, printCode, printInline, printMarkdown, type Resolve } from "./markdown.ts";
import { type DocumentSchema, printMembers, type Schemas } from "./schema-members.ts";

/** The parts of the OpenAPI document that the pages show. */
export interface OpenApi {
  readonly info: { readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, { readonly post: DocumentOperation }>>;
  readonly components: { readonly schemas: Schemas; readonly responses: Readonly<Record<string, DocumentAnswer>> };
}

interface DocumentOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly requestBody: { readonly content: { readonly "application/json": DocumentContent } };
  readonly responses: Readonly<Record<string, DocumentAnswer>>;
}

interface DocumentContent {
  readonly schema: DocumentSchema;
  readonly examples: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
}

interface DocumentAnswer {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: { readonly "application/json": DocumentContent };
}

/** A page below `/reference`. */
export interface ReferencePage {
  readonly path: string;
  readonly title: string;
  readonly summary: string;
  readonly content: Html;
  readonly aside?: Html;
  readonly passages: readonly Passage[];
}

export interface Reference {
  readonly pages: readonly ReferencePage[];
  readonly navigation: readonly NavigationGroup[];
}

/** Prints a page for each operation of the OpenAPI document, and one that lists them. */
export function printReference(document: OpenApi, guidesAbout: (operation: string) => readonly Guide[]): Reference {
  const operations = Object.values(document.paths).map(({ post }) => post);
  const names = new Set(operations.map(({ operationId }) => operationId));
  const navigation = document.tags.map(({ name, description }) => ({
    title: name,
    description,
    links: operations
      .filter(({ operationId }) => operationId.startsWith(`${name}.`))
      .map(({ operationId, summary }) => ({
        path: pathOf(operationId),
        title: operationId.slice(name.length + 1),
        words: `${operationId} ${summary}`,
        isCode: true,
        summary,
      })),
  }));
  const pages = operations.map((operation) => printOperation(operation, document, names, guidesAbout));
  return { pages: [printIndex(document, navigation, operations.length, names), ...pages], navigation };
}

/** A page of the documents. */
export interface Guide {
  readonly path: string;
  readonly title: string;
}

/** The address of the page of an operation below the root of the service. */
export function pathOf(operation: string): string {
  return `reference/${operation}`;
}

function printIndex(
  { info }: OpenApi,
  navigation: readonly (NavigationGroup & { description: string })[],
  count: number,
  names: ReadonlySet<string>,
): ReferencePage {
  const path = "reference";
  const { content } = printMarkdown(info.description, {
    resolve: resolveFrom(path),
    codeAddress: operationAddress(path, names),
  });
  return {
    path,
    title: "API reference",
    summary: `The ${count} operations of Latchkey ${info.version}.`,
    passages: [],
    content: html`<article class="prose">
<h1>API reference</h1>
<p class="lead">${count} operations of version ${info.version}. Also as an <a href="openapi.json">OpenAPI 3.1 document</a>, which generators of clients read.</p>
${content}
</article>
${filterField("reader-operations", "Filter operations")}
<div id="reader-operations" class="operations">${navigation.map(
      ({ title, description, links }) => html`<section data-group>
<h2 id="${title}"><a class="anchor" href="#${title}">${title}</a></h2><p>${description}</p>
<ul>${links.map(
        (link) =>
          html`<li data-words="${`${link.words ?? ""}`.toLowerCase()}"><a href="${link.path}"><code>${title}.${link.title}</code><span>${"summary" in link && String(link.summary)}</span></a></li>`,
      )}</ul></section>`,
    )}</div>`,
  };
}

function printOperation(
  operation: DocumentOperation,
  { components: { schemas, responses } }: OpenApi,
  names: ReadonlySet<string>,
  guidesAbout: (operation: string) => readonly Guide[],
): ReferencePage {
  const { operationId: name, summary } = operation;
  const path = pathOf(name);
  const root = rootFrom(path);
  const resolve = resolveFrom(path);
  const codeAddress = operationAddress(path, new Set([...names].filter((other) => other !== name)));
  const inline = (text: string) => printInline(text, { resolve, codeAddress });
  const description = printMarkdown(operation.description, { resolve, codeAddress });
  const request = operation.requestBody.content["application/json"];
  const answer = operation.responses[200]!.content!["application/json"];
  const data = answer.schema.properties!.data!;
  const [example] = Object.entries(request.examples);
  const [title, { value }] = example!;
  const errors = Object.entries(operation.responses).flatMap(([status, response]) =>
    errorsOf(status, response.$ref ? responses[response.$ref.slice(response.$ref.lastIndexOf("/") + 1)]! : response),
  );
  const guides = guidesAbout(name);
  const more = Object.entries(request.examples).slice(1);
  const content = html`<article class="prose operation">
<p class="above"><a href="${root}reference#${name.split(".")[0]}">${name.split(".")[0]}</a></p>
<h1>${summary}</h1>
<p class="call"><span>POST</span> <code>/v2/${name}</code></p>
<p class="to-example"><a href="#reader-example">Example and form</a></p>
${description.content}
${guides.length > 0 && html`<p class="guides">In the documents: ${guides.map((guide, index) => html`${index > 0 && ", "}<a href="${root}${guide.path}">${guide.title}</a>`)}</p>`}
<h2 id="parameters"><a class="anchor" href="#parameters">Parameters</a></h2>
${parameters(request.schema, { schemas, inline, marksRequired: true })}
<h2 id="answer"><a class="anchor" href="#answer">Answer</a></h2>
<p>${answerKind(data, answer.schema)}</p>
${printMembers(data, { schemas, inline, marksRequired: false })}
<h2 id="errors"><a class="anchor" href="#errors">Errors</a></h2>
<ul class="errors">${errors.map(
    ({ status, type, meaning }) =>
      html`<li><span class="status">${status}</span><div><a href="${root}errors/${type}"><code>${type}</code></a><p>${inline(meaning)}</p></div></li>`,
  )}</ul>
${more.length > 0 && html`<h2 id="more-examples"><a class="anchor" href="#more-examples">More examples</a></h2>${more.map(([id, one]) => printExchange(one.summary, one.value, answer.examples[id]?.value))}`}
</article>`;
  const command = declaredCommand(name);
  const snippets = examplesOf(command, value, EXAMPLE_URL);
  const aside = html`<aside class="try" id="reader-example" aria-label="Example">
<div id="reader-call" hidden><button type="button" class="primary" id="reader-call-button">Send a request</button></div>
<script type="application/json" id="reader-operation">${dataBlock({ command, schema: request.schema, input: value })}</script>
<h2>${request.examples[title]!.summary}</h2>
<div class="tabs" id="reader-snippets">
<div role="tablist" aria-label="Language" hidden>${Object.keys(snippets).map((language, index) => html`<button type="button" role="tab" id="tab-${language}" aria-controls="code-${language}" aria-selected="${index === 0 ? "true" : "false"}" tabindex="${index === 0 ? 0 : -1}">${language}</button>`)}</div>
${Object.entries(snippets).map(([language, code]) => html`<div role="tabpanel" id="code-${language}" aria-labelledby="tab-${language}" data-language="${language}">${printCode(code, highlightLanguages[language as ExampleLanguage])}</div>`)}
</div>
<h2>Its answer</h2>
${printCode(JSON.stringify(answer.examples[title]?.value ?? {}, null, 2), "json")}
</aside>`;
  return {
    path,
    title: name,
    summary,
    content,
    aside,
    passages: [
      { id: "", title: summary, text: [name, ...description.passages.map(({ text }) => text)].join(" ") },
      { id: "parameters", title: "Parameters", text: wordsOf(request.schema).join(" ") },
      { id: "answer", title: "Answer", text: wordsOf(data).join(" ") },
    ],
  };
}

/** JSON inside of a script element, which `</script>` in a text would end. The policy does not apply to it: it is data. */
function dataBlock({
  command: { operation, words, flags, deletes },
  ...rest
}: {
  command: DeclaredCommand;
  schema: DocumentSchema;
  input: unknown;
}): Html {
  const needed: OperationData = {
    ...(rest as Pick<OperationData, "schema" | "input">),
    command: {
      operation,
      words,
      flags: flags.map((flag) => ({ ...flag, help: "" })),
      ...(deletes && { deletes }),
    },
  };
  return new Html(JSON.stringify(needed).replaceAll("<", "\\u003c"));
}

function parameters(schema: DocumentSchema, options: Parameters<typeof printMembers>[1]): Html {
  if (schema.type === "array") return html`<p>A list of objects:</p>${printMembers(schema, options)}`;
  if (Object.keys(schema.properties ?? {}).length === 0) return html`<p>None: the body is <code>{}</code>.</p>`;
  return printMembers(schema, options);
}

function answerKind(data: DocumentSchema, envelope: DocumentSchema): Html {
  if (envelope.properties?.pagination)
    return html`A page of a list. <code>pagination.cursor</code> asks for the next one.`;
  return html`${data.type === "array" ? "A list" : "An object"} in <code>data</code>:`;
}

function printExchange(summary: string, input: unknown, output: unknown): Html {
  return html`<details class="exchange"><summary>${summary}</summary>
${printCode(JSON.stringify(input, null, 2), "json", "Body")}
${output !== undefined && printCode(JSON.stringify(output, null, 2), "json", "Answer")}</details>`;
}

/** The errors in the description of an answer, which is a list in Markdown. */
function errorsOf(
  status: string,
  { description = "" }: DocumentAnswer,
): { status: string; type: string; meaning: string }[] {
  return [...description.matchAll(/^- \[`([^`]+)`\]\([^)]*\): (.*)$/gm)].map(([, type, meaning]) => ({
    status,
    type: type!,
    meaning: meaning!,
  }));
}

/** The names and descriptions in a schema. */
function wordsOf(schema: DocumentSchema): string[] {
  const inner = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.anyOf ?? []),
    ...(schema.items ? [schema.items] : []),
  ];
  return [...Object.keys(schema.properties ?? {}), schema.description ?? "", ...inner.flatMap(wordsOf)].filter(Boolean);
}

/** Links of the document begin at the root of the service. */
function resolveFrom(path: string): Resolve {
  return (address) => (address.startsWith("/") ? rootFrom(path) + address.slice(1) : address);
}

/** Where code leads that is the name of an operation. */
export function operationAddress(path: string, names: ReadonlySet<string>): (code: string) => string | undefined {
  return (code) => (names.has(code) ? rootFrom(path) + pathOf(code) : undefined);
}
