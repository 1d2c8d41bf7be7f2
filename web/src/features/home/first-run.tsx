import type { Device } from "@devmesh/contracts/model/device";
import { Button, Code, Group, Loader, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import { useReading } from "../../api/use-reading.ts";
import { Card } from "../../components/card.tsx";
import { Snippet } from "../../components/code-block.tsx";
import { Failure } from "../../components/failure.tsx";
import { diagnosisDetail } from "../devices/shared/diagnosis-words.ts";
import { useDiagnostics } from "../devices/shared/use-diagnostics.ts";
import styles from "./first-run.module.css";

/** How often it is read whether a device was added, or a stranger refused, in milliseconds. */
const readMs = 3_000;

/** Properties of {@link FirstRun}. */
interface FirstRunProps {
  /** The only device; null before it is added. */
  readonly device: Device | null;
  readonly onAdd: () => void;
  /** Called when the steps are no longer wanted. */
  readonly onEnd: () => void;
}

/** The three steps of a new installation, which tick themselves: add a device, connect it, call it. */
export function FirstRun({ device, onAdd, onEnd }: FirstRunProps) {
  const api = useApi();
  const isConnected = device?.online === true;
  const call = useMutation({
    mutationFn: (id: string) =>
      api.call("callFunction", { params: { id, func: "sum" }, query: {}, body: [2, 3] }),
  });
  return (
    <Card>
      <div className={styles.steps}>
        <h2>Connect your first device</h2>
        <p>Three steps, about two minutes. Everything else appears by itself once values arrive.</p>
        <ol>
          <Step title="Add a device" nth={1} isDone={device !== null} isNext={device === null}>
            {device === null ? (
              <>
                <Text>It gets an id, which is its MQTT user name, and a token, which is its password.</Text>
                <Button mt={8} onClick={onAdd}>
                  Add the first device
                </Button>
              </>
            ) : (
              <Text>
                <Code>{device.id}</Code> is created. Its token is kept under{" "}
                <Link href={`/devices/${device.id}/credentials`}>Credentials</Link>.
              </Text>
            )}
          </Step>
          <Step title="Connect it" nth={2} isDone={isConnected} isNext={device !== null && !isConnected}>
            {isConnected ? (
              <Text>
                <Code>{device.id}</Code> is connected.
              </Text>
            ) : (
              <Text>The user name is the device’s id, the password its token.</Text>
            )}
            {device !== null && !isConnected && <Connect id={device.id} />}
          </Step>
          <Step
            title="Call a function of it"
            nth={3}
            isDone={call.isSuccess}
            isNext={isConnected && !call.isSuccess}
          >
            <Text>
              A simulated device adds numbers: <Code>sum</Code> of <Code>[2, 3]</Code>
              {call.isSuccess && (
                <>
                  {" "}
                  is <Code>{JSON.stringify(call.data)}</Code>
                </>
              )}
            </Text>
            {isConnected && !call.isSuccess && (
              <Button mt={8} loading={call.isPending} onClick={() => call.mutate(device.id)}>
                Call sum
              </Button>
            )}
            <Failure error={call.error} title="The device did not answer with a result" />
          </Step>
        </ol>
        <Group mt="md">
          <Button variant={call.isSuccess ? "filled" : "default"} onClick={onEnd}>
            {call.isSuccess ? "Done" : "Skip the steps"}
          </Button>
        </Group>
      </div>
    </Card>
  );
}

interface StepProps {
  readonly title: string;
  readonly nth: number;
  readonly isDone: boolean;
  readonly isNext: boolean;
  readonly children: ReactNode;
}

function Step({ title, nth, isDone, isNext, children }: StepProps) {
  return (
    <li data-done={isDone || undefined} aria-current={isNext ? "step" : undefined}>
      <span className={styles.mark} aria-hidden="true">
        {isDone ? <Check size={16} /> : nth}
      </span>
      <div>
        <h3>
          {title}
          {isDone && <span className={styles.done}> done</span>}
        </h3>
        {children}
      </div>
    </li>
  );
}

/** How the simulated device connects, and while none has, which logins were refused. */
function Connect({ id }: { readonly id: string }) {
  const api = useApi();
  const { data: history = [] } = useDiagnostics(id);
  const { data: strangers = [] } = useReading({
    queryKey: queryKeys.unknownDevices,
    queryFn: ({ signal }) => api.call("listUnknownDevices", { signal }),
    refetchInterval: readMs,
  });
  const refused = history.find(({ name }) => name === "login_refused");
  const stranger = strangers[0];
  return (
    <div className={styles.connect}>
      <Snippet label="A simulated pump, in the folder of Devmesh" text={`npm run --silent device -- ${id}`} />
      <Text>
        <Link href={`/devices/${id}/credentials`}>Other clients</Link>, such as mosquitto, Python, Node and
        Arduino.
      </Text>
      <div role="status">
        <Text>
          <Loader size={14} mr={8} style={{ verticalAlign: "middle" }} />
          Waiting for {id} to connect.
        </Text>
        {refused !== undefined && (
          <p className={styles.refused}>
            {id} was refused: {diagnosisDetail(refused)}
          </p>
        )}
        {stranger !== undefined && (
          <p className={styles.refused}>
            {stranger.id || "A client without a user name"} was refused:{" "}
            {diagnosisDetail({ ...stranger, name: "login_refused", topic: null, detail: null })}
          </p>
        )}
      </div>
    </div>
  );
}

/** Name in the storage of the browser for steps that are no longer wanted. */
const endedKey = "devmesh.first-run-ended";

/** How long after its creation an only device belongs to a new installation, in milliseconds. */
const newMs = 24 * 60 * 60_000;

/** Whether the installation is new: the device that it has, null before the first; undefined where it is not. */
export function useFirstRun() {
  const api = useApi();
  const [ended, setEnded] = useState(() => localStorage.getItem(endedKey) !== null);
  const { data: devices } = useReading({
    queryKey: queryKeys.firstDevices,
    queryFn: ({ signal }) => api.call("listDevices", { query: { limit: 2 }, signal }),
    enabled: !ended,
    staleTime: 0,
    refetchInterval: ({ state }) => ((state.data?.length ?? 0) < 2 ? readMs : false),
  });
  const [only] = devices ?? [];
  const isNew =
    devices !== undefined &&
    devices.length < 2 &&
    (only === undefined || serverNow() - Date.parse(only.created_at) < newMs);
  return {
    device: ended || !isNew ? undefined : (only ?? null),
    end() {
      localStorage.setItem(endedKey, "true");
      setEnded(true);
    },
  };
}
