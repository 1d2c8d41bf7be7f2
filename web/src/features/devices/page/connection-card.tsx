import { Link } from "wouter";
import { Card } from "../../../components/card.tsx";
import { Fact, Facts } from "../../../components/fact.tsx";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { firmwareHint, rowOf } from "../shared/device-row.ts";
import { ConnectionFacts } from "./diagnostics.tsx";
import type { SectionProps } from "./section.ts";

/** How a device is connected, or was last, and since when it is here. */
export function ConnectionCard({ device }: SectionProps) {
  const { firmware } = rowOf(device);
  return (
    <Card title="Connection">
      <Facts>
        <Fact term="Last seen">
          {device.online ? "online now" : <RelativeTime at={device.last_seen} />}
          {device.last_seen === null && (
            <>
              {" · "}
              <Link href={`/devices/${device.id}/credentials`}>Connect it</Link>
            </>
          )}
        </Fact>
        <ConnectionFacts device={device} />
        <Fact term="Firmware">
          <span title={firmwareHint}>{firmware ?? "not reported in ota.fw_version"}</span>
        </Fact>
        <Fact term="Created">
          <RelativeTime at={device.created_at} />
        </Fact>
      </Facts>
    </Card>
  );
}
