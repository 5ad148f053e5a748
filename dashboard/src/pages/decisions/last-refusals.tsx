import { Link, lazyRouteComponent } from "@tanstack/react-router";
import { loadCode } from "../../api/connection.ts";
import { Section } from "../../ui/page.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";

const RefusalList = lazyRouteComponent(() => loadCode(() => import("./refusal-list.tsx")), "RefusalList");

/** The last refusals of a key, an identity or a namespace, with a link to all of them. */
export function LastRefusals({ about, id }: { about: string; id?: string }) {
  return (
    <Section
      title="Last refusals"
      {...(id !== undefined && { id })}
      actions={
        <Link to="/decisions" search={{ about }} className="link text-xs">
          All decisions
        </Link>
      }
    >
      <WhenSeen>
        <RefusalList about={about} />
      </WhenSeen>
    </Section>
  );
}
