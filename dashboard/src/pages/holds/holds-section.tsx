import { lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";
import { Section } from "../../ui/page.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";
import type { HoldSelection } from "./hold-list.tsx";

const HoldList = lazyRouteComponent(() => loadCode(() => import("./hold-list.tsx")), "HoldList");

/** The open holds of a key, a budget or an identity, and those that ended last. */
export function HoldsSection({ of: selection, id }: { of: HoldSelection; id?: string }) {
  return (
    <Section title="Holds" {...(id !== undefined && { id })}>
      <WhenSeen>
        <HoldList of={selection} />
      </WhenSeen>
    </Section>
  );
}
