import { TabLinks } from "../../components/tab-links.tsx";

const links = [
  { href: "/alerts", label: "Alerts" },
  { href: "/alerts/rules", label: "Rules" },
  { href: "/alerts/channels", label: "Channels" },
  { href: "/alerts/silences", label: "Silences" },
] as const;

/** The parts of the view of alerts. */
export function AlertsParts({ current }: { readonly current: (typeof links)[number]["href"] }) {
  return <TabLinks label="Parts of the alerts" links={links} current={current} />;
}
