import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { queryClient } from "./api/client.ts";
import { loadCode } from "./api/connection.ts";
import { sessionQuery } from "./api/session.ts";
import { Failed, Missing } from "./layout/failed.tsx";
import { optional, safeReturn } from "./layout/search.ts";
import {
  analyticsSearch,
  apiSettingsSearch,
  apisSearch,
  auditSearch,
  decisionsSearch,
  eventsSearch,
  keysSearch,
  listSearch,
  overviewSearch,
  rolesSearch,
  webhookSearch,
} from "./layout/searches.ts";
import { Shell } from "./layout/shell.tsx";
import { Skeleton } from "./ui/text/skeleton.tsx";

const root = createRootRoute({ component: Outlet });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search): { return?: string } => optional({ return: safeReturn(search.return) }),
  component: lazyRouteComponent(() => loadCode(() => import("./pages/sign-in.tsx")), "SignIn"),
});

/** Every page that needs a session. */
const shell = createRoute({
  getParentRoute: () => root,
  id: "shell",
  component: Shell,
  beforeLoad: async ({ location }) => {
    if (location.hash.startsWith("link=")) throw redirect({ to: "/sign-in", hash: location.hash });
    const session = await queryClient.ensureQueryData(sessionQuery);
    if (!session) throw redirect({ to: "/sign-in", search: location.href === "/" ? {} : { return: location.href } });
  },
});

const home = createRoute({
  getParentRoute: () => shell,
  path: "/",
  validateSearch: overviewSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/overview/overview.tsx")), "OverviewPage"),
});

const analytics = createRoute({
  getParentRoute: () => shell,
  path: "/analytics",
  validateSearch: analyticsSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/analytics/analytics.tsx")), "AnalyticsPage"),
});

const apis = createRoute({
  getParentRoute: () => shell,
  path: "/apis",
  validateSearch: apisSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/apis/apis.tsx")), "ApisPage"),
});

const keys = createRoute({
  getParentRoute: () => shell,
  path: "/apis/$apiId",
  validateSearch: keysSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/keys/keys.tsx")), "KeysPage"),
});

const apiSettings = createRoute({
  getParentRoute: () => shell,
  path: "/apis/$apiId/settings",
  validateSearch: apiSettingsSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/apis/api-settings.tsx")), "ApiSettingsPage"),
});

const welcome = createRoute({
  getParentRoute: () => shell,
  path: "/welcome",
  component: lazyRouteComponent(() => loadCode(() => import("./pages/welcome.tsx")), "Welcome"),
});

const key = createRoute({
  getParentRoute: () => shell,
  path: "/apis/$apiId/keys/$keyId",
  component: lazyRouteComponent(() => loadCode(() => import("./pages/keys/key.tsx")), "KeyPage"),
});

const rootKeys = createRoute({
  getParentRoute: () => shell,
  path: "/root-keys",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/root-keys/root-keys.tsx")), "RootKeysPage"),
});

const identities = createRoute({
  getParentRoute: () => shell,
  path: "/identities",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/identities/identities.tsx")), "IdentitiesPage"),
});

const identity = createRoute({
  getParentRoute: () => shell,
  path: "/identities/$identityId",
  component: lazyRouteComponent(() => loadCode(() => import("./pages/identities/identity.tsx")), "IdentityPage"),
});

const budgets = createRoute({
  getParentRoute: () => shell,
  path: "/budgets",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/budgets/budgets.tsx")), "BudgetsPage"),
});

const budget = createRoute({
  getParentRoute: () => shell,
  path: "/budgets/$budgetId",
  component: lazyRouteComponent(() => loadCode(() => import("./pages/budgets/budget.tsx")), "BudgetPage"),
});

const plans = createRoute({
  getParentRoute: () => shell,
  path: "/plans",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/plans/plans.tsx")), "PlansPage"),
});

const plan = createRoute({
  getParentRoute: () => shell,
  path: "/plans/$planId",
  component: lazyRouteComponent(() => loadCode(() => import("./pages/plans/plan.tsx")), "PlanPage"),
});

const namespaces = createRoute({
  getParentRoute: () => shell,
  path: "/ratelimits",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/ratelimits/namespaces.tsx")), "NamespacesPage"),
});

const namespace = createRoute({
  getParentRoute: () => shell,
  path: "/ratelimits/$namespaceId",
  validateSearch: overviewSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/ratelimits/namespace.tsx")), "NamespacePage"),
});

const roles = createRoute({
  getParentRoute: () => shell,
  path: "/roles",
  validateSearch: rolesSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/roles/roles.tsx")), "RolesPage"),
});

const audit = createRoute({
  getParentRoute: () => shell,
  path: "/audit",
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/audit/audit.tsx")), "AuditPage"),
});

const decisions = createRoute({
  getParentRoute: () => shell,
  path: "/decisions",
  validateSearch: decisionsSearch,
  component: lazyRouteComponent(() => import("./pages/decisions/decisions.tsx"), "DecisionsPage"),
});

const events = createRoute({
  getParentRoute: () => shell,
  path: "/events",
  validateSearch: eventsSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/events/events.tsx")), "EventsPage"),
});

const webhooks = createRoute({
  getParentRoute: () => shell,
  path: "/webhooks",
  component: lazyRouteComponent(() => loadCode(() => import("./pages/webhooks/webhooks.tsx")), "WebhooksPage"),
});

const webhook = createRoute({
  getParentRoute: () => shell,
  path: "/webhooks/$webhookId",
  validateSearch: webhookSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/webhooks/webhook.tsx")), "WebhookPage"),
});

const workspaces = createRoute({
  getParentRoute: () => shell,
  path: "/workspaces",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/workspaces/workspaces.tsx")), "WorkspacesPage"),
});

const settings = createRoute({
  getParentRoute: () => shell,
  path: "/settings",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => loadCode(() => import("./pages/settings/settings.tsx")), "SettingsPage"),
});

/** Any other address. */
const missing = createRoute({ getParentRoute: () => shell, path: "$", component: Missing });

export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    shell.addChildren([
      home,
      analytics,
      welcome,
      apis,
      keys,
      apiSettings,
      key,
      identities,
      identity,
      budgets,
      budget,
      plans,
      plan,
      namespaces,
      namespace,
      roles,
      audit,
      decisions,
      events,
      webhooks,
      webhook,
      rootKeys,
      workspaces,
      settings,
      missing,
    ]),
  ]),
  defaultPreload: "intent",
  defaultErrorComponent: Failed,
  defaultNotFoundComponent: Missing,
  defaultPendingComponent: () => (
    <div className="p-6">
      <Skeleton />
    </div>
  ),
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
