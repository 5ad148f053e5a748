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
import { optional, safeReturn } from "./layout/search.ts";
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
  beforeLoad: () => {
    throw redirect({ to: "/apis" });
  },
});

const apis = createRoute({
  getParentRoute: () => shell,
  path: "/apis",
  component: lazyRouteComponent(() => import("./pages/apis/apis.tsx"), "ApisPage"),
});

const keys = createRoute({
  getParentRoute: () => shell,
  path: "/apis/$apiId",
  component: lazyRouteComponent(() => import("./pages/keys/keys.tsx"), "KeysPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([signIn, shell.addChildren([home, apis, keys])]),
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
