import { keyPrefixes } from "@devmesh/contracts/model/api-key";
import { Alert, Anchor, Button, Center, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { isNotEmpty, useForm } from "@mantine/form";
import { useMutation } from "@tanstack/react-query";
import { Waypoints } from "lucide-react";
import { useEffect } from "react";
import { createApiClient } from "../api/api-client.ts";
import { ApiProblem } from "../api/api-problem.ts";
import { Snippet } from "../components/code-block.tsx";
import { useSession } from "./session.tsx";

/** Signs in with a master key after checking it with a request. */
export function SignIn() {
  const { notice, signIn } = useSession();
  const form = useForm({ initialValues: { key: "" }, validate: { key: isNotEmpty("Enter a key.") } });
  const checking = useMutation({
    mutationFn: (key: string) => checkKey(key),
    onSuccess: (wrong, key) => (wrong === null ? signIn(key) : form.setFieldError("key", wrong)),
  });
  useEffect(() => {
    document.title = "Sign in · Devmesh";
  }, []);

  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={420} shadow="sm">
        <form onSubmit={form.onSubmit(({ key }) => checking.mutate(key.trim()))} noValidate>
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
              description="It stays in this tab of the browser until you close it."
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
              The first start made it and printed it. Run one of these where Devmesh was installed:
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
  { installation: "Docker compose", command: "grep MASTER_KEY .env" },
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

/** Checks with the gateway that a key is a valid master key. Returns the error; null for none. */
async function checkKey(key: string): Promise<string | null> {
  const kind = otherKinds[key.split("_", 1)[0] ?? ""];
  if (kind !== undefined)
    return `This is ${kind}. The dashboard needs a master key; those begin with ${keyPrefixes.master}_.`;
  // A header can carry no other characters.
  if (!/^[\x21-\x7e]+$/.test(key)) return "This is no key: keys hold letters, digits and _ only.";
  try {
    const api = createApiClient({ key });
    await api.call("listDevices", { query: { limit: 1 } });
    return null;
  } catch (error) {
    if (!(error instanceof ApiProblem)) return error instanceof Error ? error.message : String(error);
    if (error.status === 401) return "This key is not known, or it was deleted or has expired.";
    if (error.status === 403) return "This key is of another kind. The dashboard needs a master key.";
    return error.message;
  }
}
