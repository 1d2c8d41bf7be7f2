import type { Device } from "@devmesh/contracts/model/device";
import type { ComponentType } from "react";

/** Properties of a section of a device's page. */
export interface SectionProps {
  /** The current device; it changes while the section is open. */
  readonly device: Device;
}

/** One part of a device's page, with an address of its own. */
export interface Section {
  /** Below `/devices/:id/`. */
  readonly path: string;
  readonly label: string;
  /** It has a form: once opened it stays mounted while other sections are shown. */
  readonly keeps?: true;
  readonly View: ComponentType<SectionProps>;
}
