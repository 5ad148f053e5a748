import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { queryClient } from "./api/client.ts";
import { sessionQuery } from "./api/session.ts";
import { Failed, Missing } from "./layout/failed.tsx";
import { oneOf, optional, safeReturn, text } from "./layout/search.ts";
import {
  analyticsSearch,
  apiSettingsSearch,
  apisSearch,
  auditSearch,
  eventsSearch,
  listSearch,
  overviewSearch,
  rolesSearch,
  webhookSearch,
} from "./layout/searches.ts";
import { Shell } from "./layout/shell.tsx";
import { Skeleton } from "./ui/skeleton.tsx";

const root = createRootRoute({ component: Outlet });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search): { return?: string } => optional({ return: safeReturn(search.return) }),
  component: lazyRouteComponent(() => import("./pages/sign-in.tsx"), "SignIn"),
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
  component: lazyRouteComponent(() => import("./pages/overview/overview.tsx"), "OverviewPage"),
});

const analytics = createRoute({
  getParentRoute: () => shell,
  path: "/analytics",
  validateSearch: analyticsSearch,
  component: lazyRouteComponent(() => import("./pages/analytics/analytics.tsx"), "AnalyticsPage"),
});

const apis = createRoute({
  getParentRoute: () => shell,
  path: "/apis",
  validateSearch: apisSearch,
  component: lazyRouteComponent(() => import("./pages/apis/apis.tsx"), "ApisPage"),
});

/** Search and filters of the keys of an API, and the key whose panel is open. */
export interface KeysSearch {
  q?: string | undefined;
  state?: "active" | "disabled" | "expired" | undefined;
  expires?: "1d" | "14d" | "90d" | undefined;
  prefix?: string | undefined;
  role?: string | undefined;
  owner?: string | undefined;
  order?: "asc" | "desc" | undefined;
  key?: string | undefined;
}

const keys = createRoute({
  getParentRoute: () => shell,
  path: "/apis/$apiId",
  validateSearch: (search): KeysSearch =>
    optional({
      q: text(search.q),
      state: oneOf(search.state, ["active", "disabled", "expired"]),
      expires: oneOf(search.expires, ["1d", "14d", "90d"]),
      prefix: text(search.prefix),
      role: text(search.role),
      owner: text(search.owner),
      order: oneOf(search.order, ["asc", "desc"]),
      key: text(search.key),
    }),
  component: lazyRouteComponent(() => import("./pages/keys/keys.tsx"), "KeysPage"),
});

const apiSettings = createRoute({
  getParentRoute: () => shell,
  path: "/apis/$apiId/settings",
  validateSearch: apiSettingsSearch,
  component: lazyRouteComponent(() => import("./pages/apis/api-settings.tsx"), "ApiSettingsPage"),
});

const welcome = createRoute({
  getParentRoute: () => shell,
  path: "/welcome",
  component: lazyRouteComponent(() => import("./pages/welcome.tsx"), "Welcome"),
});

const key = createRoute({
  getParentRoute: () => shell,
  path: "/apis/$apiId/keys/$keyId",
  component: lazyRouteComponent(() => import("./pages/keys/key.tsx"), "KeyPage"),
});

const rootKeys = createRoute({
  getParentRoute: () => shell,
  path: "/root-keys",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import("./pages/root-keys/root-keys.tsx"), "RootKeysPage"),
});

const identities = createRoute({
  getParentRoute: () => shell,
  path: "/identities",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import("./pages/identities/identities.tsx"), "IdentitiesPage"),
});

const identity = createRoute({
  getParentRoute: () => shell,
  path: "/identities/$identityId",
  component: lazyRouteComponent(() => import("./pages/identities/identity.tsx"), "IdentityPage"),
});

const namespaces = createRoute({
  getParentRoute: () => shell,
  path: "/ratelimits",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import("./pages/ratelimits/namespaces.tsx"), "NamespacesPage"),
});

const namespace = createRoute({
  getParentRoute: () => shell,
  path: "/ratelimits/$namespaceId",
  validateSearch: overviewSearch,
  component: lazyRouteComponent(() => import("./pages/ratelimits/namespace.tsx"), "NamespacePage"),
});

const roles = createRoute({
  getParentRoute: () => shell,
  path: "/roles",
  validateSearch: rolesSearch,
  component: lazyRouteComponent(() => import("./pages/roles/roles.tsx"), "RolesPage"),
});

const audit = createRoute({
  getParentRoute: () => shell,
  path: "/audit",
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import("./pages/audit/audit.tsx"), "AuditPage"),
});

const events = createRoute({
  getParentRoute: () => shell,
  path: "/events",
  validateSearch: eventsSearch,
  component: lazyRouteComponent(() => import("./pages/events/events.tsx"), "EventsPage"),
});

const webhooks = createRoute({
  getParentRoute: () => shell,
  path: "/webhooks",
  component: lazyRouteComponent(() => import("./pages/webhooks/webhooks.tsx"), "WebhooksPage"),
});

const webhook = createRoute({
  getParentRoute: () => shell,
  path: "/webhooks/$webhookId",
  validateSearch: webhookSearch,
  component: lazyRouteComponent(() => import("./pages/webhooks/webhook.tsx"), "WebhookPage"),
});

const workspaces = createRoute({
  getParentRoute: () => shell,
  path: "/workspaces",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import("./pages/workspaces/workspaces.tsx"), "WorkspacesPage"),
});

const settings = createRoute({
  getParentRoute: () => shell,
  path: "/settings",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import("./pages/settings/settings.tsx"), "SettingsPage"),
});

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
      namespaces,
      namespace,
      roles,
      audit,
      events,
      webhooks,
      webhook,
      rootKeys,
      workspaces,
      settings,
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
