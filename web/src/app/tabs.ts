import { ChartLine, CodeXml, KeyRound, type LucideIcon, Monitor, Users, Waypoints } from "lucide-react";
import { type ComponentType, type LazyExoticComponent, lazy } from "react";

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
    View: lazy(() =>
      import("../features/devices/list/devices-tab.tsx").then((module) => ({ default: module.DevicesTab })),
    ),
  },
  {
    label: "Data",
    Icon: ChartLine,
    path: "/data",
    pattern: "/data",
    View: lazy(() => import("../features/data/data-tab.tsx").then((module) => ({ default: module.DataTab }))),
  },
  {
    label: "Keys",
    Icon: KeyRound,
    path: "/keys",
    pattern: "/keys",
    View: lazy(() => import("../features/keys/keys-tab.tsx").then((module) => ({ default: module.KeysTab }))),
  },
  {
    label: "Customers",
    Icon: Users,
    path: "/customers",
    pattern: "/customers",
    View: lazy(() =>
      import("../features/customers/customers-tab.tsx").then((module) => ({ default: module.CustomersTab })),
    ),
  },
  {
    label: "Mesh",
    Icon: Waypoints,
    path: "/mesh",
    pattern: "/mesh",
    View: lazy(() => import("../features/mesh/mesh-tab.tsx").then((module) => ({ default: module.MeshTab }))),
  },
  {
    label: "API",
    Icon: CodeXml,
    path: "/reference",
    pattern: "/reference/:operation?",
    View: lazy(() =>
      import("../features/reference/reference-tab.tsx").then((module) => ({ default: module.ReferenceTab })),
    ),
  },
];

/** Views that only other views link to. */
export const innerViews: readonly View[] = [
  {
    pattern: "/devices/:id/*?",
    View: lazy(() =>
      import("../features/devices/page/device-page.tsx").then((module) => ({ default: module.DevicePage })),
    ),
  },
];
