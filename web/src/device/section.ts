import type { Device } from "@devmesh/contracts/model/device";
import type { ComponentType } from "react";

/** What a section of a device's page is about. */
export interface SectionProps {
  /** As it is now: it changes while the section is shown. */
  readonly device: Device;
}

/** One part of a device's page, with an address of its own. */
export interface Section {
  /** Below `/devices/:id/`. */
  readonly path: string;
  readonly label: string;
  /** Something is typed into it: once it was shown it stays as it is while other sections of the device are. */
  readonly keeps?: true;
  readonly View: ComponentType<SectionProps>;
}
