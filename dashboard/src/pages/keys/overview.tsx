import type { Key } from "@latchkey/sdk";
import { lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";
import { EditInPlace } from "../../ui/fields/edit-in-place.tsx";
import { MetadataFact } from "../../ui/fields/metadata-fact.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";
import { Time } from "../../ui/text/time.tsx";
import { OwnerLink } from "./key-state.tsx";

const load = () => loadCode(() => import("./key-editors.tsx"));
const NameEditor = lazyRouteComponent(load, "NameEditor");
const OwnerEditor = lazyRouteComponent(load, "OwnerEditor");
const ExpiryEditor = lazyRouteComponent(load, "ExpiryEditor");
const KeyMetadataEditor = lazyRouteComponent(load, "KeyMetadataEditor");

/** The plain members of a key, edited in place. */
export function KeyOverview({ of: key }: { of: Key }) {
  const needs = `apis.${key.apiId}.update_key`;
  return (
    <Facts>
      <Fact name="Name">
        <EditInPlace
          label="the name"
          needs={needs}
          display={key.name ?? <None />}
          editor={(onClose) => <NameEditor of={key} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Owner">
        <EditInPlace
          label="the owner"
          needs={needs}
          display={key.identity ? <OwnerLink {...key.identity} /> : <None />}
          editor={(onClose) => <OwnerEditor of={key} onClose={onClose} />}
        />
      </Fact>
      <Fact name="Expires">
        <EditInPlace
          label="when it expires"
          needs={needs}
          display={key.expires === undefined ? <None text="never" /> : <Time at={key.expires} />}
          editor={(onClose) => <ExpiryEditor of={key} onClose={onClose} />}
        />
      </Fact>
      <MetadataFact
        meta={key.meta}
        needs={needs}
        editor={(before, onClose) => <KeyMetadataEditor of={key} before={before} onClose={onClose} />}
      />
      {key.leakedAt !== undefined && (
        <Fact name="Reported as leaked">
          <Time at={key.leakedAt} />
        </Fact>
      )}
      <Fact name="Created">
        <Time at={key.createdAt} />
      </Fact>
      {key.updatedAt !== undefined && (
        <Fact name="Changed">
          <Time at={key.updatedAt} />
        </Fact>
      )}
      <Fact name="Last used">
        {key.lastUsedAt === undefined ? <None text="never" /> : <Time at={key.lastUsedAt} relative />}
      </Fact>
    </Facts>
  );
}
