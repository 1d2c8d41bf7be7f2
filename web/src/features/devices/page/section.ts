import type { Device } from "@devmesh/contracts/model/device";

/** Properties of a section of a device's page. */
export interface SectionProps {
  /** The current device; it changes while the section is open. */
  readonly device: Device;
}
