import { ChartLine, CodeXml, KeyRound, type LucideIcon, Monitor, Users, Waypoints } from "lucide-react";
import type { ComponentType, LazyExoticComponent } from "react";
import { lazyView } from "../components/lazy-view.ts";

/** One view of the dashboard, loaded when it is first shown. */
interface View {
  /** Pattern of its paths; the view reads the part at `*` itself. */
  readonly pattern: string;
  readonly View: LazyExoticComponent<ComponentType>;
}

/** A view with a link in the navigation. */
export interface Tab extends View {
  readonly label: string;
  readonly Icon: LucideIcon;
  /** Path of its link. */
  readonly path: string;
}

/** The tabs in the order of the navigation. Each begins with a `Page`, which titles it. */
export const tabs: readonly Tab[] = [
  {
    label: "Devices",
    Icon: Monitor,
    path: "/devices",
    pattern: "/devices",
    View: lazyView(async () => (await import("../features/devices/list/devices-tab.tsx")).DevicesTab),
  },
  {
    label: "Data",
    Icon: ChartLine,
    path: "/data",
    pattern: "/data",
    View: lazyView(async () => (await import("../features/data/data-tab.tsx")).DataTab),
  },
  {
    label: "Keys",
    Icon: KeyRound,
    path: "/keys",
    pattern: "/keys",
    View: lazyView(async () => (await import("../features/keys/keys-tab.tsx")).KeysTab),
  },
  {
    label: "Customers",
    Icon: Users,
    path: "/customers",
    pattern: "/customers",
    View: lazyView(async () => (await import("../features/customers/customers-tab.tsx")).CustomersTab),
  },
  {
    label: "Mesh",
    Icon: Waypoints,
    path: "/mesh",
    pattern: "/mesh",
    View: lazyView(async () => (await import("../features/mesh/mesh-tab.tsx")).MeshTab),
  },
  {
    label: "API",
    Icon: CodeXml,
    path: "/reference",
    pattern: "/reference/:operation?",
    View: lazyView(async () => (await import("../features/reference/reference-tab.tsx")).ReferenceTab),
  },
];

/** Views that only other views link to. */
export const innerViews: readonly View[] = [
  {
    pattern: "/devices/:id/*?",
    View: lazyView(async () => (await import("../features/devices/page/device-page.tsx")).DevicePage),
  },
];
