import { lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";
import { Section } from "../../ui/page.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";

const Activity = lazyRouteComponent(() => loadCode(() => import("./activity.tsx")), "Activity");

/** What was changed about a resource. */
export function ActivitySection({ target, id }: { target: string; id?: string }) {
  return (
    <Section title="Activity" {...(id !== undefined && { id })}>
      <WhenSeen>
        <Activity target={target} />
      </WhenSeen>
    </Section>
  );
}
