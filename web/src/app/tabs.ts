import { ChartLine, House, KeyRound, type LucideIcon, Monitor, Server, Users } from "lucide-react";
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
}

/** The tabs in the order of the navigation. Each begins with a `Page`, which titles it. */
export const tabs: readonly Tab[] = [
  {
    label: "Home",
    Icon: House,
    path: "/home",
    View: lazyView(async () => (await import("../features/home/home-tab.tsx")).HomeTab),
  },
  {
    label: "Devices",
    Icon: Monitor,
    path: "/devices",
    View: lazyView(async () => (await import("../features/devices/list/devices-tab.tsx")).DevicesTab),
  },
  {
    label: "Data",
    Icon: ChartLine,
    path: "/data",
    View: lazyView(async () => (await import("../features/data/data-tab.tsx")).DataTab),
  },
  {
    label: "Keys",
    Icon: KeyRound,
    path: "/keys",
    View: lazyView(async () => (await import("../features/keys/keys-tab.tsx")).KeysTab),
  },
  {
    label: "Customers",
    Icon: Users,
    path: "/customers",
    View: lazyView(async () => (await import("../features/customers/customers-tab.tsx")).CustomersTab),
  },
  {
    label: "Services",
    Icon: Server,
    path: "/services",
    View: lazyView(async () => (await import("../features/mesh/mesh-tab.tsx")).MeshTab),
  },
];

/** Views that only other views link to. */
export const innerViews: readonly TabView[] = [
  {
    path: "/devices/:id/*?",
    View: lazyView(async () => (await import("../features/devices/page/device-page.tsx")).DevicePage),
  },
];
