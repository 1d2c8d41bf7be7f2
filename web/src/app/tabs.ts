import {
  ChartLine,
  Cpu,
  House,
  KeyRound,
  ListChecks,
  type LucideIcon,
  Package,
  Server,
  Users,
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
    path: "/home",
    View: lazyView(async () => (await import("../features/home/home-tab.tsx")).HomeTab),
  },
  {
    label: "Devices",
    Icon: Cpu,
    group: "",
    key: "d",
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
    path: "/jobs/new",
    View: lazyView(async () => (await import("../features/jobs/new-job.tsx")).NewJobPage),
  },
  {
    path: "/jobs/:id",
    View: lazyView(async () => (await import("../features/jobs/job-page.tsx")).JobPage),
  },
  {
    path: "/devices/:id/*?",
    View: lazyView(async () => (await import("../features/devices/page/device-page.tsx")).DevicePage),
  },
];
