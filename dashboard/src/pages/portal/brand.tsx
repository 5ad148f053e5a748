import schema from "virtual:operation/portal.createSession";
import type { Input } from "../../api/client.ts";
import { member, textProblem } from "../../api/schema.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import { Select } from "../../ui/fields/select.tsx";

/** How the page of the portal looks. */
export type PortalLook = NonNullable<Input<"portal.createSession">["page"]>;
type Language = NonNullable<PortalLook["language"]>;

const languages: Record<Language, string> = {
  en: "English",
  de: "Deutsch",
  fr: "Français",
  es: "Español",
  pt: "Português",
  ja: "日本語",
  ar: "العربية",
};

/** The look as it is entered: an empty text is a default. */
export interface Brand {
  readonly name: string;
  readonly logoUrl: string;
  readonly color: string;
  readonly returnUrl: string;
  readonly language: Language | "browser";
}

export function brandFrom({ name = "", logoUrl = "", color = "", returnUrl = "", language }: PortalLook = {}): Brand {
  return { name, logoUrl, color, returnUrl, language: language ?? "browser" };
}

/** `inherited`: what holds where a field is empty. */
export function BrandFields({
  value: brand,
  onChange,
  inherited = {},
  problem,
}: {
  value: Brand;
  onChange: (brand: Brand) => void;
  inherited?: PortalLook | undefined;
  problem: string | undefined;
}) {
  const change = (changed: Partial<Brand>) => onChange({ ...brand, ...changed });
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Your name"
          value={brand.name}
          onChange={(name) => change({ name })}
          placeholder={inherited.name ?? "Acme Documents"}
        />
        <Select
          label="Language"
          value={brand.language}
          onChange={(language) => change({ language })}
          options={[
            {
              value: "browser" as const,
              label: inherited.language ? languages[inherited.language] : "Language of the browser",
            },
            ...(Object.keys(languages) as Language[]).map((value) => ({ value, label: languages[value] })),
          ]}
        />
        <TextField
          label="Logo"
          description="An https address that every browser can load."
          value={brand.logoUrl}
          onChange={(logoUrl) => change({ logoUrl })}
          placeholder={inherited.logoUrl ?? "https://acme.example/logo.svg"}
        />
        <TextField
          label="Color of buttons and links"
          description="It is made lighter or darker where it could not be read."
          value={brand.color}
          onChange={(color) => change({ color })}
          placeholder={inherited.color ?? "#246bce"}
          isMono
        />
        <TextField
          label="Where the link back leads"
          description="Empty: there is none."
          value={brand.returnUrl}
          onChange={(returnUrl) => change({ returnUrl })}
          placeholder={inherited.returnUrl ?? "https://acme.example/account"}
        />
      </div>
      {problem && <p className="text-xs text-bad">{problem}</p>}
    </>
  );
}

/** The look of the input, or why it cannot be used. */
export function lookOf({ language, ...entered }: Brand): { value: PortalLook; problem: string | undefined } {
  const declared = member(schema, "page");
  const texts = Object.entries(entered).filter(([, text]) => text !== "");
  const value: PortalLook = { ...Object.fromEntries(texts), ...(language !== "browser" && { language }) };
  const wrong = texts.find(([name, text]) => textProblem(member(declared, name), text) !== undefined);
  return { value, problem: wrong && looks[wrong[0] as keyof typeof looks] };
}

/** What the texts of the look must be. */
const looks = {
  name: "Your name has at most 100 characters.",
  logoUrl: "The logo is an address that begins with https://.",
  color: "The color has the form #246bce.",
  returnUrl: "The link back is an address that begins with https:// or http://.",
} as const;
