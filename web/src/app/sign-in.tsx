import { keyPrefixes } from "@devmesh/contracts/model/api-key";
import {
  Alert,
  Anchor,
  Button,
  Center,
  Checkbox,
  Paper,
  PasswordInput,
  Stack,
  Text,
  Title,
} from "@mantine/core";
import { isNotEmpty, useForm } from "@mantine/form";
import { useMutation } from "@tanstack/react-query";
import { Waypoints } from "lucide-react";
import { useEffect } from "react";
import { createApiClient } from "../api/api-client.ts";
import { ApiProblem } from "../api/api-problem.ts";
import { serverNow } from "../api/server-clock.ts";
import { Snippet } from "../components/code-block.tsx";
import { type LastingKey, useSession } from "./session.tsx";

/** Signs in with a master key after checking it with a request. */
export function SignIn() {
  const { notice, signIn } = useSession();
  const form = useForm({
    initialValues: { key: "", stays: false },
    validate: { key: isNotEmpty("Enter a key.") },
  });
  const checking = useMutation({
    mutationFn: ({ key, stays }: typeof form.values) => checkedSession(key.trim(), stays),
    onSuccess: signIn,
    onError: (error) => form.setFieldError("key", error.message),
  });
  useEffect(() => {
    document.title = "Sign in · Devmesh";
  }, []);

  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={420} shadow="sm">
        <form onSubmit={form.onSubmit((values) => checking.mutate(values))} noValidate>
          <Stack>
            <Title order={1}>
              <Waypoints size={22} /> Devmesh
            </Title>
            {notice !== null && (
              <Alert color="yellow" role="alert">
                {notice}
              </Alert>
            )}
            <PasswordInput
              label="Master key"
              description="It stays in the open tabs of this browser until you close them."
              placeholder="mk_…"
              autoComplete="current-password"
              name="master-key"
              required
              data-autofocus
              autoFocus
              {...form.getInputProps("key")}
              errorProps={{ role: "alert" }}
              visibilityToggleButtonProps={{ "aria-label": "Show the key" }}
            />
            <Checkbox
              label={`Stay signed in for ${lastingDays} days`}
              description="On your own computer only. Signing out ends it."
              {...form.getInputProps("stays", { type: "checkbox" })}
            />
            <Button type="submit" loading={checking.isPending}>
              Sign in
            </Button>
          </Stack>
        </form>
        <details style={{ marginTop: "var(--mantine-spacing-md)" }}>
          <Text size="sm" component="summary" style={{ cursor: "pointer" }}>
            Where is the key?
          </Text>
          <Stack gap="xs" mt="xs">
            <Text size="xs" c="dimmed">
              The first start made it and printed it, unless you set MASTER_KEY. To see it again, run in the
              folder of Devmesh:
            </Text>
            {keyPlaces.map(({ installation, command }) => (
              <Snippet key={installation} label={installation} text={command} />
            ))}
          </Stack>
        </details>
        <Text size="xs" c="dimmed" mt="md">
          The API is described in the{" "}
          <Anchor href="/docs" size="xs" underline="always">
            reference
          </Anchor>
          .
        </Text>
      </Paper>
    </Center>
  );
}

/** Commands that print the first master key, for each way to install Devmesh. */
const keyPlaces = [
  { installation: "Started with npm start", command: "cat .data/master-key" },
  { installation: "Docker compose", command: "sed -n 's/^MASTER_KEY=//p' .env" },
  {
    installation: "Kubernetes",
    command: "kubectl get secret master-key -n devmesh -o jsonpath='{.data.MASTER_KEY}' | base64 -d",
  },
];

/** Names of other kinds of key, by their prefix. */
const otherKinds: Readonly<Record<string, string>> = {
  [keyPrefixes.device_key]: "a device key",
  [keyPrefixes.customer]: "a customer key",
  [keyPrefixes.public_key]: "a device's public key",
  [keyPrefixes.device]: "a device's MQTT token",
};

/** How long a user stays signed in who asks for it, in days. */
const lastingDays = 30;

/**
 * Checks with the gateway that a key is a valid master key, and makes another one for this browser if the user stays
 * signed in in it. Rejects with an error for the user.
 */
async function checkedSession(key: string, stays: boolean): Promise<string | LastingKey> {
  const kind = otherKinds[key.split("_", 1)[0] ?? ""];
  if (kind !== undefined)
    throw new Error(
      `This is ${kind}. The dashboard needs a master key; those begin with ${keyPrefixes.master}_.`,
    );
  // A header can carry no other characters.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Error("This is no key: keys hold letters, digits and _ only.");
  const api = createApiClient({ key });
  try {
    await api.call("listDevices", { query: { limit: 1 } });
    if (!stays) return key;
    const expires_at = new Date(serverNow() + lastingDays * 86_400_000).toISOString();
    const made = await api.call("createKey", { body: { name: "Stay signed in", expires_at } });
    // Only lists may lack it.
    return made.key === null ? key : { id: made.id, key: made.key };
  } catch (error) {
    const status = error instanceof ApiProblem ? error.status : null;
    if (status === 401) throw new Error("This key is not known, or it was deleted or has expired.");
    if (status === 403) throw new Error("This key is of another kind. The dashboard needs a master key.");
    throw error;
  }
}
