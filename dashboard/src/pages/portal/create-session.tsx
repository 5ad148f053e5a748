import schema from "virtual:operation/portal.createSession";
import type { Secret } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Input, read } from "../../api/client.ts";
import { duration } from "../../api/format.ts";
import { member, textProblem } from "../../api/schema.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { Fold } from "../../ui/fold.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { Skeleton } from "../../ui/text/skeleton.tsx";
import { ActionsField, type PortalAction, useLacks, usualActions } from "./actions-field.tsx";
import { type Brand, BrandFields, brandFrom, lookOf } from "./brand.tsx";
import { CreatedSession } from "./created-session.tsx";
import { KeyLimitFields, keysOf, noLimits } from "./key-limits.tsx";

const MINUTE = 60_000;
const lives = [5, 15, 30, 60].map((minutes) => minutes * MINUTE);

/** Creates a session in which an owner manages their keys, and shows the address of its page once. */
export function CreateSession({
  apiId: givenApi,
  externalId: givenOwner,
  onClose,
}: {
  /** Undefined: it is chosen. */
  apiId?: string;
  /** Undefined: it is entered. */
  externalId?: string;
  onClose: () => void;
}) {
  const { data: apis, error } = useQuery({
    ...read("apis.listApis", { limit: 100 }),
    enabled: givenApi === undefined,
  });
  const [chosenApi, setChosenApi] = useState<string>();
  const [owner, setOwner] = useState(givenOwner ?? "");
  const [chosenActions, setActions] = useState<readonly PortalAction[]>();
  const [limits, setLimits] = useState(noLimits);
  const [brand, setBrand] = useState<Brand>(brandFrom());
  const [life, setLife] = useState(String(15 * MINUTE));
  const [created, setCreated] = useState<{ url: Secret; expiresAt: number }>();
  const apiId = givenApi ?? chosenApi ?? apis?.[0]?.apiId ?? "";
  const api = useQuery({ ...read("apis.getApi", { apiId }), enabled: apiId !== "" });
  const lacks = useLacks(apiId);
  if (created) return <CreatedSession owner={owner} {...created} onClose={onClose} />;

  const inherited = api.data?.portal;
  const wanted = chosenActions ?? inherited?.actions ?? usualActions;
  // Who may not read the settings of the API inherits them unseen.
  const areUnseen = api.isError && chosenActions === undefined;
  const actions = wanted.filter((action) => lacks(action) === undefined);
  const keys = keysOf(limits);
  const page = lookOf(brand);
  const ownerProblem = owner === "" ? undefined : textProblem(member(schema, "externalId"), owner);
  const input: Input<"portal.createSession"> = {
    apiId,
    externalId: owner,
    ...(!areUnseen && { actions }),
    ...(Object.keys(keys.value).length > 0 && { keys: keys.value }),
    ...(Object.keys(page.value).length > 0 && { page: page.value }),
    expiresIn: Number(life),
  };
  return (
    <FormDialog
      title={givenOwner === undefined ? "Session of the portal" : `Portal of ${givenOwner}`}
      operation="portal.createSession"
      input={input}
      problem={
        (api.isLoading
          ? "Wait for the settings of the API"
          : apiId === ""
            ? "There is no API"
            : owner === ""
              ? "Enter the owner"
              : ownerProblem) ??
        (actions.length === 0 ? "Choose what the session may do" : undefined) ??
        keys.problem ??
        page.problem
      }
      action="Create session"
      needs={`apis.${apiId || "*"}.create_portal_session`}
      onClose={onClose}
      onDone={({ data: { url, expiresAt } }) => setCreated({ url, expiresAt })}
    >
      <p>The owner of keys manages them on a page of this service, in your name. The session ends by itself.</p>
      {error && <ErrorBox error={error} />}
      <div className="grid gap-4 sm:grid-cols-2">
        {givenOwner === undefined && (
          <TextField
            label="Owner"
            description="Your own id of the user or company. A new one creates an identity."
            value={owner}
            onChange={setOwner}
            problem={ownerProblem}
            placeholder="acme"
            autoFocus
          />
        )}
        {givenApi === undefined &&
          (apis === undefined ? (
            <Skeleton lines={1} />
          ) : (
            <Select
              label="API"
              value={apiId}
              onChange={setChosenApi}
              options={apis.map((api) => ({ value: api.apiId, label: api.name }))}
            />
          ))}
        <Select
          label="The session ends after"
          value={life}
          onChange={setLife}
          options={lives.map((value) => ({ value: String(value), label: duration(value) }))}
        />
      </div>
      <ActionsField label="The session may" value={actions} onChange={setActions} lacks={lacks} />
      <div className="border-b border-line">
        <Fold title="Limits on the keys" summary={limits.max === "" ? "At most 10 keys" : `At most ${limits.max} keys`}>
          <KeyLimitFields value={limits} onChange={setLimits} problem={keys.problem} />
        </Fold>
        <Fold title="Brand and language" summary={brand.name || (inherited?.page ? "As the API says" : undefined)}>
          <BrandFields value={brand} onChange={setBrand} inherited={inherited?.page} problem={page.problem} />
        </Fold>
      </div>
    </FormDialog>
  );
}
