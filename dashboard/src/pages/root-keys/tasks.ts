/** What root keys are made for, each with the permissions that it needs. `*` in the middle is replaced by one API. */
export interface Task {
  readonly title: string;
  readonly description: string;
  readonly permissions: readonly string[];
}

export const tasks: readonly Task[] = [
  {
    title: "Verify keys",
    description: "For the service that receives requests of your users.",
    permissions: ["apis.*.verify_key"],
  },
  {
    title: "Count rate limits",
    description: "For a service that limits logins, mails or exports.",
    permissions: ["ratelimits.*.limit", "ratelimits.*.create_namespace"],
  },
  {
    title: "Issue and change keys",
    description: "For the backend of your settings page.",
    permissions: ["apis.*.create_key", "apis.*.read_key", "apis.*.update_key", "apis.*.delete_key"],
  },
  {
    title: "Open the portal for customers",
    description: "For the backend that lets its users manage their own keys.",
    permissions: [
      "apis.*.create_portal_session",
      "apis.*.create_key",
      "apis.*.read_key",
      "apis.*.update_key",
      "apis.*.delete_key",
      "apis.*.read_analytics",
    ],
  },
  {
    title: "Read everything",
    description: "For this dashboard without changes. Key strings stay hidden.",
    permissions: [
      "apis.*.read_api",
      "apis.*.read_key",
      "apis.*.read_analytics",
      "identities.*.read_identity",
      "budgets.*.read_budget",
      "plans.*.read_plan",
      "ratelimits.*.read_namespace",
      "ratelimits.*.read_override",
      "ratelimits.*.read_analytics",
      "permissions.*.read_permission",
      "permissions.*.read_role",
      "rootKeys.*.read_root_key",
      "audit.*.read_event",
      "events.*.read_event",
      "webhooks.*.read_webhook",
      "system.*.read_status",
    ],
  },
  {
    title: "Follow events",
    description: "For a program that calls events.listEvents.",
    permissions: ["events.*.read_event"],
  },
  {
    title: "Manage webhooks",
    description: "Their receivers read every event.",
    permissions: [
      "events.*.read_event",
      "webhooks.*.create_webhook",
      "webhooks.*.read_webhook",
      "webhooks.*.update_webhook",
      "webhooks.*.delete_webhook",
    ],
  },
  {
    title: "Manage APIs",
    description: "Create, change and delete APIs.",
    permissions: ["apis.*.create_api", "apis.*.read_api", "apis.*.update_api", "apis.*.delete_api"],
  },
  {
    title: "Manage identities",
    description: "Owners of keys with their limits and metadata.",
    permissions: [
      "identities.*.create_identity",
      "identities.*.read_identity",
      "identities.*.update_identity",
      "identities.*.delete_identity",
    ],
  },
  {
    title: "Manage budgets",
    description: "Create, refill and change them, and give them to keys and identities that it may change.",
    permissions: [
      "budgets.*.create_budget",
      "budgets.*.read_budget",
      "budgets.*.update_budget",
      "budgets.*.delete_budget",
      "budgets.*.assign_budget",
    ],
  },
  {
    title: "Manage plans",
    description: "Create and change them, and give them to keys and identities that it may change.",
    permissions: [
      "plans.*.create_plan",
      "plans.*.read_plan",
      "plans.*.update_plan",
      "plans.*.delete_plan",
      "plans.*.assign_plan",
    ],
  },
  {
    title: "Manage roles and permissions",
    description: "Create and change them, and give them to keys.",
    permissions: [
      "permissions.*.create_permission",
      "permissions.*.read_permission",
      "permissions.*.update_permission",
      "permissions.*.delete_permission",
      "permissions.*.create_role",
      "permissions.*.read_role",
      "permissions.*.update_role",
      "permissions.*.delete_role",
      "permissions.*.add_permission_to_role",
      "permissions.*.remove_permission_from_role",
      "permissions.*.add_permission_to_key",
      "permissions.*.remove_permission_from_key",
      "permissions.*.add_role_to_key",
      "permissions.*.remove_role_from_key",
    ],
  },
  {
    title: "Manage rate limits",
    description: "Namespaces and their overrides.",
    permissions: [
      "ratelimits.*.read_namespace",
      "ratelimits.*.delete_namespace",
      "ratelimits.*.read_override",
      "ratelimits.*.set_override",
      "ratelimits.*.delete_override",
    ],
  },
  {
    title: "Run an edge",
    description: "For a program that verifies keys outside of the service: it reads their records and charges them.",
    permissions: ["replicas.*.open"],
  },
  {
    title: "Manage root keys",
    description: "It can only hand out permissions that it has.",
    permissions: [
      "rootKeys.*.create_root_key",
      "rootKeys.*.read_root_key",
      "rootKeys.*.update_root_key",
      "rootKeys.*.delete_root_key",
    ],
  },
  {
    title: "Administer",
    description: "Everything. Keep it for people and for emergencies.",
    permissions: ["*"],
  },
];

/** The permissions of a task, for all APIs or for one. */
export function permissionsOf({ permissions }: Task, apiId: string | undefined): string[] {
  return permissions.map((permission) =>
    apiId === undefined || permission.endsWith(".create_api")
      ? permission
      : permission.replace(/^(apis|replicas)\.\*\./, `$1.${apiId}.`),
  );
}
