import type { ChangedKind, MeshChange } from "@devmesh/contracts/model/mesh-change";
import { Button, Group } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import {
  BellOff,
  Bookmark,
  KeyRound,
  LayoutDashboard,
  type LucideIcon,
  Mail,
  Megaphone,
  Package,
  Pencil,
  Plus,
  Trash2,
  TriangleAlert,
  UserRound,
  Webhook,
} from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { Card } from "../../components/card.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { shortId } from "../../components/short-id.ts";
import { Waiting } from "../../components/waiting.tsx";
import { authorOf, deedOf, furtherChanges } from "./change-words.ts";
import styles from "./home.module.css";

/** How often the changes are read again, in milliseconds. */
const changesMs = 15_000;
/** Number of changes shown at first. */
const shownAtFirst = 6;

const icons: Readonly<Record<ChangedKind, LucideIcon>> = {
  device: Pencil,
  key: KeyRound,
  customer: UserRound,
  mail: Mail,
  view: Bookmark,
  board: LayoutDashboard,
  firmware: Package,
  webhook: Webhook,
  rule: TriangleAlert,
  channel: Megaphone,
  silence: BellOff,
};

/** Who changed what last, with links to the key and to what is still there. */
export function LastChanges() {
  const api = useApi();
  const [whole, setWhole] = useState(false);
  const {
    data: changes,
    error,
    refetch,
  } = useReading({
    queryKey: queryKeys.meshChanges,
    queryFn: ({ signal }) => api.call("listMeshChanges", { signal }),
    refetchInterval: changesMs,
    // No frame announces changes: they are read again when the page is opened.
    staleTime: 0,
  });
  const shown = (whole ? changes : changes?.slice(0, shownAtFirst)) ?? [];
  const devices = [...new Set(shown.flatMap(deviceOf))];
  const existing = useQueries({
    queries: devices.map((id) => ({
      queryKey: queryKeys.device(id),
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        api.call("readDevice", { params: { id }, signal }),
    })),
    combine: (found) => new Set(devices.filter((_, nth) => found[nth]?.data !== undefined)),
  });
  return (
    <Card title="Last changes" flush>
      <Failure error={error} title="The last changes could not be read" onRetry={() => void refetch()} />
      {changes === undefined && error === null && <Waiting rows={shownAtFirst} />}
      {changes?.length === 0 && (
        <p className={styles.quiet}>
          None yet. Who creates, changes or deletes devices, keys and customers is listed here.
        </p>
      )}
      {shown.length > 0 && (
        <ul className={styles.rows} aria-label="Last changes">
          {shown.map((change) => (
            <Change
              key={[change.at, change.by.kind, change.by.id, change.operation].join(" ")}
              change={change}
              isThere={(id) => existing.has(id)}
            />
          ))}
        </ul>
      )}
      {changes !== undefined && changes.length > shownAtFirst && !whole && (
        <Group p="4px 16px 12px">
          <Button size="xs" variant="default" onClick={() => setWhole(true)}>
            Show all {countText(changes.length)}
          </Button>
        </Group>
      )}
    </Card>
  );
}

/** The device that exists after a change. */
function deviceOf({ target, operation }: MeshChange): string[] {
  return target?.kind === "device" && operation !== "deleteDevice" ? [target.id] : [];
}

interface ChangeProps {
  readonly change: MeshChange;
  /** Whether a device of that id exists, as far as it is known. */
  readonly isThere: (deviceId: string) => boolean;
}

function Change({ change, isThere }: ChangeProps) {
  const Icon = iconOf(change);
  const { text, href } = authorOf(change.by);
  return (
    <li>
      <Icon size={16} aria-hidden="true" />
      <span className={`${styles.what} ${styles.cut}`} title={wordsOf(change)}>
        <b>{deedOf(change)}</b> <ChangedThing change={change} isThere={isThere} />
        {furtherChanges(change)}
      </span>
      <span className={styles.aside}>
        <Link href={href} title={`${text} (${change.by.id})`}>
          {text}
        </Link>
        <RelativeTime at={change.at} />
      </span>
    </li>
  );
}

/** The whole line, which may be cut. */
function wordsOf(change: MeshChange): string {
  return `${deedOf(change)} ${change.target?.id ?? ""}${furtherChanges(change)}`;
}

function iconOf({ operation, target }: MeshChange): LucideIcon {
  if (operation.startsWith("create")) return Plus;
  if (operation.startsWith("delete")) return Trash2;
  if (operation.startsWith("rotate")) return KeyRound;
  return icons[target?.kind ?? "device"];
}

/** The id of what was changed; of a device that is still there, a link to it. */
function ChangedThing({ change: { target, operation }, isThere }: ChangeProps) {
  if (target === null) return null;
  if (target.kind === "key") return <Link href={`/keys?filter=${target.id}`}>{shortId(target.id)}</Link>;
  if (target.kind !== "device") return <span title={target.id}>{shortId(target.id)}</span>;
  if (operation === "deleteDevice" || !isThere(target.id)) return target.id;
  return <Link href={`/devices/${target.id}`}>{target.id}</Link>;
}
