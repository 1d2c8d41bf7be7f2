import { maxSessionDays } from "@devmesh/contracts/model/session";
import { release } from "@devmesh/contracts/release";
import { Alert, Anchor, Button, Checkbox, Paper, PasswordInput, Stack, Text } from "@mantine/core";
import { isNotEmpty, useForm } from "@mantine/form";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { z } from "zod";
import { createApiClient } from "../api/api-client.ts";
import { queryKeys } from "../api/query-keys.ts";
import { serverAnswers } from "../api/server-answers.ts";
import { Snippet } from "../components/code-block.tsx";
import { StateDot } from "../components/state.tsx";
import { browserName } from "./browser-name.ts";
import { withEnteredKey } from "./entered-key.ts";
import { useSession } from "./session.tsx";
import styles from "./sign-in.module.css";

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
    <main className={styles.page}>
      <div className={styles.middle}>
        <img src="/icon.svg" alt="" width={40} height={40} />
        <h1>Sign in to Devmesh</h1>
        <p>with a master key of this installation</p>
        <Paper withBorder className={styles.card}>
          <form onSubmit={form.onSubmit((values) => checking.mutate(values))} noValidate>
            <Stack>
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
                withAsterisk={false}
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
              <Button type="submit" fullWidth loading={checking.isPending}>
                Sign in
              </Button>
            </Stack>
          </form>
        </Paper>
        <KeyPlaces />
      </div>
      <footer className={styles.foot}>
        <ServerState />
        <Anchor href="/docs" size="xs" c="dimmed" ml="auto">
          API reference
        </Anchor>
      </footer>
    </main>
  );
}

/** Where the first master key is. The server names its file only to a browser on its own machine. */
function KeyPlaces() {
  const { data: file = null } = useQuery({
    queryKey: queryKeys.keyPlace,
    queryFn: async ({ signal }) => {
      const answer = await fetch("/key-place.json", { signal });
      return KeyPlace.parse(await answer.json()).file;
    },
    retry: false,
  });
  const places =
    file === null ? keyPlaces : [{ installation: "On this machine", command: `cat ${shellWord(file)}` }];
  return (
    <details>
      <summary>Where is the key?</summary>
      <Stack gap="xs" mt="xs">
        <Text size="xs" c="dimmed">
          The first start made it, unless you set MASTER_KEY. To see it again, run
          {file === null && " in the folder of Devmesh"}:
        </Text>
        {places.map(({ installation, command }) => (
          <Snippet key={installation} label={installation} text={command} />
        ))}
      </Stack>
    </details>
  );
}

const KeyPlace = z.object({ file: z.string().nullable() });

function shellWord(text: string): string {
  return /^[A-Za-z0-9_./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** How often the server is asked whether it answers, in milliseconds. */
const askMs = 5_000;

/** Whether the server answers: a wrong key and a server that is away look alike to a reader. */
function ServerState() {
  const { data: answers } = useQuery({
    queryKey: queryKeys.serverAnswers,
    queryFn: ({ signal }) => serverAnswers("", signal),
    refetchInterval: askMs,
  });
  const { host } = window.location;
  return (
    <>
      <StateDot look={answers === undefined ? "idle" : answers ? "good" : "bad"} />
      <span role="status">
        {answers === undefined
          ? host
          : answers
            ? `${host} answers`
            : `${host} does not answer. It is asked again.`}
      </span>
      <span>{release}</span>
    </>
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
