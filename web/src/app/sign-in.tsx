import { maxSessionDays } from "@devmesh/contracts/model/session";
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
import { useEffect } from "react";
import { createApiClient } from "../api/api-client.ts";
import { Snippet } from "../components/code-block.tsx";
import { browserName } from "./browser-name.ts";
import { withEnteredKey } from "./entered-key.ts";
import { useSession } from "./session.tsx";

/** Signs in with a master key, which begins a session and is not stored. */
export function SignIn() {
  const { notice, signIn } = useSession();
  const form = useForm({
    initialValues: { key: "", stays: false },
    validate: { key: isNotEmpty("Enter a key.") },
  });
  const checking = useMutation({
    mutationFn: async ({ key: entered, stays }: typeof form.values) => {
      const body = { name: browserName(navigator.userAgent), days: stays ? maxSessionDays : briefDays };
      const key = entered.trim();
      const begun = await withEnteredKey(key, () => createApiClient({ key }).call("createSession", { body }));
      signIn(begun, { key, stays });
    },
    onError: (error) => form.setFieldError("key", error.message),
  });
  useEffect(() => {
    document.title = "Sign in · Devmesh";
  }, []);

  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={420}>
        <form onSubmit={form.onSubmit((values) => checking.mutate(values))} noValidate>
          <Stack>
            <Title order={1} fz="1.25rem">
              <img src="/icon.svg" alt="" width={24} height={24} style={{ verticalAlign: "-0.3em" }} />{" "}
              Devmesh
            </Title>
            {notice !== null && (
              <Alert color="yellow" role="alert">
                {notice}
              </Alert>
            )}
            <PasswordInput
              label="Master key"
              description="It is not stored: it begins a session of a day, which the open tabs of this browser share."
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
              label={`Stay signed in for ${maxSessionDays} days`}
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
  { installation: "One container", command: "docker exec devmesh cat /data/master-key" },
  { installation: "Docker compose", command: "sed -n 's/^MASTER_KEY=//p' .env" },
  {
    installation: "Kubernetes",
    command: "kubectl get secret master-key -n devmesh -o jsonpath='{.data.MASTER_KEY}' | base64 -d",
  },
];

/** How long a session lasts for a user who does not stay signed in, in days. */
const briefDays = 1;
