import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import type { IconName } from "../elements/icon.tsx";

/** One view of the dashboard, loaded when it is first shown. */
interface View {
  /** Pattern of all paths that it shows; what stands for `*` is its own to read. */
  readonly pattern: string;
  readonly View: LazyExoticComponent<ComponentType>;
}

/** A view that the navigation leads to. */
export interface Tab extends View {
  readonly label: string;
  readonly icon: IconName;
  /** Where its navigation leads. */
  readonly path: string;
}

/** The tabs in the order of the navigation. Each begins with a `Page`, which titles it. */
export const tabs: readonly Tab[] = [
  {
    label: "Devices",
    icon: "devices",
    path: "/devices",
    pattern: "/devices",
    View: lazy(() => import("../devices/devices-tab.tsx").then((module) => ({ default: module.DevicesTab }))),
  },
  {
    label: "Data",
    icon: "data",
    path: "/data",
    pattern: "/data",
    View: lazy(() => import("../data/data-tab.tsx").then((module) => ({ default: module.DataTab }))),
  },
  {
    label: "Keys",
    icon: "keys",
    path: "/keys",
    pattern: "/keys",
    View: lazy(() => import("../keys/keys-tab.tsx").then((module) => ({ default: module.KeysTab }))),
  },
  {
    label: "Customers",
    icon: "customers",
    path: "/customers",
    pattern: "/customers",
    View: lazy(() =>
      import("../customers/customers-tab.tsx").then((module) => ({ default: module.CustomersTab })),
    ),
  },
  {
    label: "Mesh",
    icon: "mesh",
    path: "/mesh",
    pattern: "/mesh",
    View: lazy(() => import("../mesh/mesh-tab.tsx").then((module) => ({ default: module.MeshTab }))),
  },
  {
    label: "API",
    icon: "reference",
    path: "/reference",
    pattern: "/reference/:operation?",
    View: lazy(() =>
      import("../api-reference/reference-tab.tsx").then((module) => ({ default: module.ReferenceTab })),
    ),
  },
];

/** Views that other views lead to. */
export const innerViews: readonly View[] = [
  {
    pattern: "/devices/:id/*?",
    View: lazy(() => import("../device/device-page.tsx").then((module) => ({ default: module.DevicePage }))),
  },
];
