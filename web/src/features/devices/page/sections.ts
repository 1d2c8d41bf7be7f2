import { AccessSection } from "./access-section.tsx";
import { CredentialsSection } from "./credentials-section.tsx";
import { DataSection } from "./data-section.tsx";
import { LogSection } from "./log-section.tsx";
import { OverviewSection } from "./overview-section.tsx";
import { RpcSection } from "./rpc-section.tsx";
import type { Section } from "./section.ts";
import { ShadowSection } from "./shadow-section.tsx";

/** The sections of a device's page, in the order in which they are offered; the first has no path of its own. */
export const sections: readonly [Section, ...Section[]] = [
  { path: "", label: "Overview", View: OverviewSection },
  { path: "shadow", label: "Shadow", keeps: true, View: ShadowSection },
  { path: "rpc", label: "RPC", keeps: true, View: RpcSection },
  { path: "data", label: "Data", View: DataSection },
  { path: "log", label: "Log", View: LogSection },
  { path: "access", label: "Access", keeps: true, View: AccessSection },
  { path: "credentials", label: "Credentials", View: CredentialsSection },
];
