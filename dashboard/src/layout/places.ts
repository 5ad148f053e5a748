import type { LinkProps } from "@tanstack/react-router";
import {
  Building2,
  ChartColumn,
  Gauge,
  House,
  KeyRound,
  Layers,
  ListChecks,
  type LucideIcon,
  Radio,
  ScrollText,
  Settings2,
  ShieldCheck,
  UsersRound,
  Wallet,
  Waypoints,
  Webhook,
} from "lucide-react";

/** A page that the left side and the command palette lead to. */
export interface Place {
  readonly label: string;
  readonly to: NonNullable<LinkProps["to"]>;
  readonly icon: LucideIcon;
  /** Other words under which the command palette finds it. */
  readonly words?: string;
}

/** All places, in the order of the left side. */
export const places: readonly Place[] = [
  { label: "Overview", to: "/", icon: House, words: "home attention live" },
  { label: "APIs", to: "/apis", icon: KeyRound, words: "keys" },
  { label: "Identities", to: "/identities", icon: UsersRound, words: "owners externalId" },
  { label: "Budgets", to: "/budgets", icon: Wallet, words: "credits balance spend teams" },
  { label: "Plans", to: "/plans", icon: Layers, words: "tiers limits gold customers" },
  { label: "Rate limits", to: "/ratelimits", icon: Gauge, words: "namespaces overrides" },
  { label: "Roles", to: "/roles", icon: Waypoints, words: "permissions matrix query" },
  { label: "Analytics", to: "/analytics", icon: ChartColumn, words: "usage charts tags" },
  { label: "Decisions", to: "/decisions", icon: ListChecks, words: "refusals refused request log why denied" },
  { label: "Audit log", to: "/audit", icon: ScrollText, words: "changes history" },
  { label: "Events", to: "/events", icon: Radio, words: "types stream history" },
  { label: "Webhooks", to: "/webhooks", icon: Webhook, words: "endpoints deliveries dead letters events" },
  { label: "Root keys", to: "/root-keys", icon: ShieldCheck, words: "access permissions sessions" },
  { label: "Workspaces", to: "/workspaces", icon: Building2, words: "tenants" },
  { label: "Settings", to: "/settings", icon: Settings2, words: "configuration health version status" },
];
