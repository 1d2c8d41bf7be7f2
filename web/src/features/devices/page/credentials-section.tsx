import { Button, Group, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { Card } from "../../../components/card.tsx";
import { Snippet } from "../../../components/code-block.tsx";
import { Confirmation } from "../../../components/confirmation.tsx";
import { Failure } from "../../../components/failure.tsx";
import { Secret } from "../../../components/secret.tsx";
import { readCommand } from "../connect/clients.ts";
import { ConnectWizard } from "../connect/connect-wizard.tsx";
import type { SectionProps } from "./section.ts";

/** The secrets of a device, and the consequences of their replacement. */
const secrets = [
  {
    member: "token",
    rotate: "rotateToken",
    what: "the token",
    label: "Token",
    use: "MQTT password of the device",
    consequence: "The device is disconnected within a second, and can connect again only with the new token.",
  },
  {
    member: "public_key",
    rotate: "rotatePublicKey",
    what: "the public key",
    label: "Public key",
    use: "For apps of its users, within its access rules",
    consequence: "Apps with the current key lose access within a second, until they get the new one.",
  },
] as const;

/** Token and public key of the device: copied, replaced, and put into examples that are ready to run. */
export function CredentialsSection({ device: { id } }: SectionProps) {
  const api = useApi();
  const [replaced, setReplaced] = useState<(typeof secrets)[number] | null>(null);
  const [ready, setReady] = useState(false);
  const { data, error, isFetching, refetch } = useReading({
    queryKey: [...queryKeys.device(id), "credentials"],
    queryFn: ({ signal }) => api.call("readCredentials", { params: { id }, signal }),
    // Read only when the user wants it, since it may ask for a master key.
    enabled: false,
    gcTime: 0,
  });
  const publicKey = (ready && data?.public_key) || "$PUBLIC_KEY";
  const { origin } = window.location;
  return (
    <Stack>
      <Card
        title="Credentials"
        actions={
          data === undefined && (
            <Button size="xs" loading={isFetching} onClick={() => void refetch()}>
              Show the credentials
            </Button>
          )
        }
      >
        <Failure error={error} title="The credentials could not be read" />
        {secrets.map((secret) => (
          <Group key={secret.member} justify="space-between" gap="xs">
            <div>
              <Text size="sm" fw={500}>
                {secret.label}
              </Text>
              <Text size="xs" c="dimmed">
                {secret.use}
              </Text>
            </div>
            <Group gap="xs">
              {data !== undefined && <Secret secret={data[secret.member]} what={secret.what} />}
              <Button size="xs" variant="default" onClick={() => setReplaced(secret)}>
                Replace {secret.what}
              </Button>
            </Group>
          </Group>
        ))}
      </Card>
      <Switch
        label="Include the secrets in the examples below"
        checked={ready}
        disabled={data === undefined}
        onChange={(event) => setReady(event.currentTarget.checked)}
      />
      <ConnectWizard id={id} token={(ready && data?.token) || "$TOKEN"} />
      <Snippet label="Read it by REST, with a master key" text={readCommand(id)} />
      <Snippet
        label="Read it by REST, with its public key"
        text={`curl -s -H "Authorization: Bearer ${publicKey}" ${origin}/api/v2/m/device`}
      />
      {replaced !== null && (
        <Confirmation
          title={`Replace ${replaced.what}?`}
          action={`Replace ${replaced.what}`}
          run={async () => {
            await api.call(replaced.rotate, { params: { id } });
            // It is shown: who replaces a secret wants the new one.
            await refetch();
          }}
          onClose={() => setReplaced(null)}
        >
          {replaced.consequence}
        </Confirmation>
      )}
    </Stack>
  );
}
