import {
  Bell,
  ChartLine,
  Cpu,
  House,
  KeyRound,
  LayoutDashboard,
  ListChecks,
  type LucideIcon,
  Package,
  Server,
  Users,
  Webhook,
} from "lucide-react";
import type { ComponentType, LazyExoticComponent } from "react";
import { lazyView } from "../components/lazy-view.ts";

/** One view of the dashboard, loaded when it is first shown. */
interface TabView {
  /** Pattern of its paths; the view reads the part at `*` itself. */
  readonly path: string;
  readonly View: LazyExoticComponent<ComponentType>;
}

/** A view with a link in the navigation. */
export interface Tab extends TabView {
  readonly label: string;
  readonly Icon: LucideIcon;
  readonly group: TabGroup;
  /** Letter that leads to it after G. */
  readonly key: string;
  /** Also in the bar of a phone. */
  readonly isInBar?: true;
}

/** Groups of the navigation, in their order, by their headings; one without tabs is left out. */
export const tabGroups = ["", "Fleet work", "Administration"] as const;
type TabGroup = (typeof tabGroups)[number];

/** The tabs in the order of the navigation. Each begins with a `Page`, which titles it. */
export const tabs: readonly Tab[] = [
  {
    label: "Home",
    Icon: House,
    group: "",
    key: "h",
    isInBar: true,
    path: "/home",
    View: lazyView(async () => (await import("../features/home/home-tab.tsx")).HomeTab),
  },
  {
    label: "Devices",
    Icon: Cpu,
    group: "",
    key: "d",
    isInBar: true,
    path: "/devices",
    View: lazyView(async () => (await import("../features/devices/list/devices-tab.tsx")).DevicesTab),
  },
  {
    label: "Data",
    Icon: ChartLine,
    group: "",
    key: "r",
    path: "/data",
    View: lazyView(async () => (await import("../features/data/data-tab.tsx")).DataTab),
  },
  {
    label: "Boards",
    Icon: LayoutDashboard,
    group: "",
    key: "b",
    path: "/boards",
    View: lazyView(async () => (await import("../features/boards/boards-tab.tsx")).BoardsTab),
  },
  {
    label: "Alerts",
    Icon: Bell,
    group: "",
    key: "a",
    isInBar: true,
    path: "/alerts",
    View: lazyView(async () => (await import("../features/alerts/alerts-tab.tsx")).AlertsTab),
  },
  {
    label: "Jobs",
    Icon: ListChecks,
    group: "Fleet work",
    key: "j",
    path: "/jobs",
    View: lazyView(async () => (await import("../features/jobs/jobs-tab.tsx")).JobsTab),
  },
  {
    label: "Firmware",
    Icon: Package,
    group: "Fleet work",
    key: "f",
    path: "/firmware",
    View: lazyView(async () => (await import("../features/firmware/firmware-tab.tsx")).FirmwareTab),
  },
  {
    label: "Keys",
    Icon: KeyRound,
    group: "Administration",
    key: "k",
    path: "/keys",
    View: lazyView(async () => (await import("../features/keys/keys-tab.tsx")).KeysTab),
  },
  {
    label: "Customers",
    Icon: Users,
    group: "Administration",
    key: "c",
    path: "/customers",
    View: lazyView(async () => (await import("../features/customers/customers-tab.tsx")).CustomersTab),
  },
  {
    label: "Webhooks",
    Icon: Webhook,
    group: "Administration",
    key: "w",
    path: "/webhooks",
    View: lazyView(async () => (await import("../features/webhooks/webhooks-tab.tsx")).WebhooksTab),
  },
  {
    label: "Services",
    Icon: Server,
    group: "Administration",
    key: "s",
    path: "/services",
    View: lazyView(async () => (await import("../features/mesh/mesh-tab.tsx")).MeshTab),
  },
];

/** Views that only other views link to. */
export const innerViews: readonly TabView[] = [
  {
    path: "/data/devices",
    View: lazyView(async () => (await import("../features/data/devices-chart.tsx")).DevicesChart),
  },
  {
    path: "/boards/:id",
    View: lazyView(async () => (await import("../features/boards/board-page.tsx")).BoardPage),
  },
  {
    path: "/jobs/new",
    View: lazyView(async () => (await import("../features/jobs/new-job.tsx")).NewJobPage),
  },
  {
    path: "/jobs/:id",
    View: lazyView(async () => (await import("../features/jobs/job-page.tsx")).JobPage),
  },
  {
    path: "/alerts/rules",
    View: lazyView(async () => (await import("../features/alerts/rules-tab.tsx")).RulesTab),
  },
  {
    path: "/alerts/rules/:id",
    View: lazyView(async () => (await import("../features/alerts/rule-page.tsx")).RulePage),
  },
  {
    path: "/alerts/channels",
    View: lazyView(async () => (await import("../features/alerts/channels-tab.tsx")).ChannelsTab),
  },
  {
    path: "/alerts/silences",
    View: lazyView(async () => (await import("../features/alerts/silences-tab.tsx")).SilencesTab),
  },
  {
    path: "/alerts/:id",
    View: lazyView(async () => (await import("../features/alerts/alert-page.tsx")).AlertPage),
  },
  {
    path: "/webhooks/:id",
    View: lazyView(async () => (await import("../features/webhooks/webhook-page.tsx")).WebhookPage),
  },
  {
    path: "/devices/:id/*?",
    View: lazyView(async () => (await import("../features/devices/page/device-page.tsx")).DevicePage),
  },
];
