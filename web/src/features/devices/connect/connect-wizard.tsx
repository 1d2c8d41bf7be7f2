import { Stack, Tabs, Text } from "@mantine/core";
import { Snippet } from "../../../components/code-block.tsx";
import { Waiting } from "../../../components/waiting.tsx";
import { clients } from "./clients.ts";
import { FirstMessage } from "./first-message.tsx";
import { useBroker } from "./use-broker.ts";

/** Height above which the steps of a client scroll: what happens below them stays in sight at 800 px. */
const panelHeight = "max(10rem, 100dvh - 38rem)";

/** Explains how a device connects, by the client that it uses, and shows whether it does. */
export function ConnectWizard({ id, token }: { readonly id: string; readonly token: string }) {
  const broker = useBroker();
  if (broker === null) return <Waiting />;
  const connection = { id, token, ...broker };
  const isLocal = /^(localhost|127\..*|::1)$/.test(connection.host);
  return (
    <Stack component="section" aria-label="Connect the device">
      <Tabs defaultValue="0" keepMounted={false}>
        <Tabs.List aria-label="Client">
          {clients.map(({ name }, nth) => (
            <Tabs.Tab key={name} value={String(nth)}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {clients.map(({ name, onBoard, steps }, nth) => (
          <Tabs.Panel key={name} value={String(nth)} mt="sm" mah={panelHeight} style={{ overflow: "auto" }}>
            <Stack>
              {onBoard && isLocal && (
                <Text size="sm">
                  A board cannot reach {connection.host}: start the mesh with HOST=0.0.0.0 and open this page
                  at the address that the computer has in the network.
                </Text>
              )}
              {onBoard && (
                <Text size="xs" c="dimmed">
                  Written after the documentation of its libraries, not run on a board.
                </Text>
              )}
              {steps(connection).map(({ label, text }) => (
                <Snippet key={label} label={label} text={text} />
              ))}
            </Stack>
          </Tabs.Panel>
        ))}
      </Tabs>
      <FirstMessage id={id} />
    </Stack>
  );
}
