import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { read } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import { planText } from "./plan-text.ts";

/** The plan of a key or an identity: a link to its page, with what it gives. */
export function AssignedPlan({ of: name }: { of: string }) {
  const { data: plan } = useQuery({
    ...read("plans.getPlan", { plan: name }),
    enabled: useCan()("plans.some.read_plan"),
  });
  if (!plan) return <span className="font-medium">{name}</span>;
  return (
    <>
      <Link to="/plans/$planId" params={{ planId: plan.planId }} className="link font-medium">
        {name}
      </Link>{" "}
      <span className="text-quiet">{planText(plan)}</span>
    </>
  );
}
