import { Button, Group, Stack, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { Confirmation } from "../../../components/confirmation.tsx";
import { Failure } from "../../../components/failure.tsx";
import { Secret } from "../../../components/secret.tsx";
import { Snippet } from "../../../components/snippet.tsx";
import { Waiting } from "../../../components/waiting.tsx";
import { curlSnippet, mqttPublishSnippet, mqttSnippet } from "../shared/connection-snippets.ts";
import { useBroker } from "../shared/use-broker.ts";
import type { SectionProps } from "./section.ts";

/** The secrets of a device, with the consequences of their rotation. */
const rotations = {
  rotateToken: {
    title: "Replace the token?",
    action: "Replace the token",
    consequence:
      "The device's connections end within a second, and it cannot come back before it has the new token.",
  },
  rotatePublicKey: {
    title: "Replace the public key?",
    action: "Replace the public key",
    consequence: "Whoever uses the present key is locked out within a second, until given the new one.",
  },
} as const;

type Rotation = keyof typeof rotations;

/** Token and public key of the device: copied, replaced, and put into commands that are ready to run. */
export function CredentialsSection({ device: { id } }: SectionProps) {
  const api = useApi();
  const [asked, setAsked] = useState<Rotation | null>(null);
  const [ready, setReady] = useState(false);
  const { data, error, isPending, refetch } = useQuery({
    queryKey: [...queryKeys.device(id), "credentials"],
    queryFn: ({ signal }) => api.call("readCredentials", { params: { id }, signal }),
    // No frame reports a rotation by another page.
    staleTime: 0,
    gcTime: 0,
  });
  const broker = useBroker();
  if (isPending) return <Waiting />;
  if (data === undefined)
    return <Failure error={error} title="The credentials could not be read" onRetry={() => void refetch()} />;

  const connection = { id, token: ready ? data.token : "$TOKEN", ...broker };
  const publicKey = ready ? data.public_key : "$PUBLIC_KEY";
  const { origin } = window.location;
  return (
    <Stack>
      <Credential
        label="Token, its MQTT password"
        what="the token"
        secret={data.token}
        onReplace={() => setAsked("rotateToken")}
      />
      <Credential
        label="Public key, for who uses the device"
        what="the public key"
        secret={data.public_key}
        onReplace={() => setAsked("rotatePublicKey")}
      />
      <Switch
        label="Put the secrets into the commands below"
        checked={ready}
        onChange={(event) => setReady(event.currentTarget.checked)}
      />
      <Snippet label="Connect by MQTT" text={mqttSnippet(connection)} />
      <Snippet label="Publish a value" text={mqttPublishSnippet(connection)} />
      <Snippet label="Read it by REST, with a master key" text={curlSnippet(id, origin)} />
      <Snippet
        label="Read it by REST, with its public key"
        text={`curl -s -H "Authorization: Bearer ${publicKey}" ${origin}/api/v2/m/device`}
      />
      {asked !== null && (
        <Confirmation
          title={rotations[asked].title}
          action={rotations[asked].action}
          run={async () => {
            await api.call(asked, { params: { id } });
            await refetch();
          }}
          onClose={() => setAsked(null)}
        >
          {rotations[asked].consequence}
        </Confirmation>
      )}
    </Stack>
  );
}

interface CredentialProps {
  readonly label: string;
  readonly what: string;
  readonly secret: string;
  readonly onReplace: () => void;
}

function Credential({ label, what, secret, onReplace }: CredentialProps) {
  return (
    <Stack gap={2}>
      <Text size="sm" fw={500}>
        {label}
      </Text>
      <Group gap="xs">
        <Secret secret={secret} what={what} />
        <Button size="xs" variant="default" onClick={onReplace}>
          Replace {what}
        </Button>
      </Group>
    </Stack>
  );
}
