import { Link } from "@tanstack/react-router";

/** The id of a resource: a link to its page if it has one. */
export function ResourceLink({ id, apiId }: { id: string; apiId: string | undefined }) {
  const look = "link font-mono text-xs";
  if (id.startsWith("key_") && apiId !== undefined) {
    return (
      <Link to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId: id }} className={look}>
        {id}
      </Link>
    );
  }
  if (id.startsWith("api_")) {
    return (
      <Link to="/apis/$apiId" params={{ apiId: id }} className={look}>
        {id}
      </Link>
    );
  }
  if (id.startsWith("id_")) {
    return (
      <Link to="/identities/$identityId" params={{ identityId: id }} className={look}>
        {id}
      </Link>
    );
  }
  if (id.startsWith("bud_")) {
    return (
      <Link to="/budgets/$budgetId" params={{ budgetId: id }} className={look}>
        {id}
      </Link>
    );
  }
  if (id.startsWith("plan_")) {
    return (
      <Link to="/plans/$planId" params={{ planId: id }} className={look}>
        {id}
      </Link>
    );
  }
  if (id.startsWith("rlns_")) {
    return (
      <Link to="/ratelimits/$namespaceId" params={{ namespaceId: id }} className={look}>
        {id}
      </Link>
    );
  }
  if (id.startsWith("rk_")) {
    return (
      <Link to="/root-keys" search={{ open: id }} className={look}>
        {id}
      </Link>
    );
  }
  if (id.startsWith("wh_")) {
    return (
      <Link to="/webhooks/$webhookId" params={{ webhookId: id }} className={look}>
        {id}
      </Link>
    );
  }
  return <code className="font-mono text-xs">{id}</code>;
}
