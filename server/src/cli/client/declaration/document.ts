import { z } from "zod";
import { updateApi } from "../../../features/apis/updateApi.ts";
import { createPermission } from "../../../features/permissions/createPermission.ts";
import { createRole } from "../../../features/permissions/createRole.ts";
import { setOverride } from "../../../features/ratelimits/setOverride.ts";
import { updateRootKey } from "../../../features/rootKeys/updateRootKey.ts";
import { inputErrorsOf, PARSE_OPTIONS } from "../../../platform/rpc/validate.ts";
import { Expires } from "../../../platform/vocabulary/schema.ts";
import { CommandError } from "../../output.ts";
import { parseYaml } from "../yaml.ts";

// The shapes are those of the operations. A member that is absent has no value in the service.

const Api = updateApi.declaration.input.omit({ apiId: true }).required({ name: true });
const Permission = createPermission.declaration.input.partial({ name: true });
const Role = createRole.declaration.input;
const Override = setOverride.declaration.input.omit({ namespace: true });
const Namespace = z.strictObject({
  name: setOverride.declaration.input.shape.namespace,
  overrides: z.array(Override).optional(),
});
const Time = z.union([Expires, z.iso.datetime().transform((text) => Date.parse(text))]);
const RootKey = updateRootKey.declaration.input
  .omit({ rootKeyId: true, permissions: true, expires: true })
  .required({ name: true })
  .extend({
    // Ids can be written as names, so the schema of the operation applies when they are resolved.
    permissions: z.array(z.string().min(1)).min(1),
    expires: Time.optional(),
  });

const Document = z
  .strictObject({
    permissions: z.array(Permission).optional(),
    roles: z.array(Role).optional(),
    namespaces: z.array(Namespace).optional(),
    apis: z.array(Api).optional(),
    rootKeys: z.array(RootKey).optional(),
  })
  .check(({ value: { permissions, roles, namespaces }, issues }) => {
    const unique = (path: (string | number)[], names: readonly string[] | undefined) =>
      names?.forEach((name, i) => {
        if (names.indexOf(name) === i) return;
        issues.push({ code: "custom", input: name, path: [...path, i], message: `names ${name} a second time` });
      });
    unique(
      ["permissions"],
      permissions?.map(({ slug }) => slug.toLowerCase()),
    );
    unique(
      ["roles"],
      roles?.map(({ name }) => name.toLowerCase()),
    );
    unique(
      ["namespaces"],
      namespaces?.map(({ name }) => name),
    );
    for (const [i, { overrides }] of namespaces?.entries() ?? []) {
      unique(
        ["namespaces", i, "overrides"],
        overrides?.map(({ identifier }) => identifier),
      );
    }
  });

/** What a service should have. A section that is absent is left alone. */
export type Document = z.output<typeof Document>;

export const sections = ["permissions", "roles", "namespaces", "apis", "rootKeys"] as const;
export type Section = (typeof sections)[number];

/** A document with all sections. */
export type WholeDocument = { [Name in Section]: NonNullable<Document[Name]> };

/** The longest document, in bytes. */
export const DOCUMENT_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Reads a document from YAML or JSON.
 *
 * @throws {CommandError} with a line for each mistake.
 */
export async function parseDocument(text: string, name: string): Promise<Document> {
  const value = await parseYaml(text, name, { aliasesMax: 100, isPublic: true });
  const parsed = Document.safeParse(value ?? {}, PARSE_OPTIONS);
  if (parsed.success) return parsed.data;
  throw new CommandError(`${name} is not valid.`, {
    details: inputErrorsOf(parsed.error.issues).map(({ message, fix }) => [message, fix].filter(Boolean).join(". ")),
  });
}
