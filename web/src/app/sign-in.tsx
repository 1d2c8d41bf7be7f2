import { Alert, Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { type FormEvent, useEffect, useState } from "react";
import { Icon } from "../elements/icon.tsx";
import { checkKey } from "./check-key.ts";
import { useSession } from "./session.tsx";

/** Asks for a master key and checks it by a request. */
export function SignIn() {
  const { notice, signIn } = useSession();
  const [key, setKey] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const [checking, setChecking] = useState(false);
  useEffect(() => {
    document.title = "Sign in · Devmesh";
  }, []);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const given = key.trim();
    if (given === "") return setWrong("Enter a key.");
    setChecking(true);
    const found = await checkKey(given, "");
    setChecking(false);
    setWrong(found);
    if (found === null) signIn(given);
  };

  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={420} shadow="sm">
        <form onSubmit={(event) => void submit(event)} noValidate>
          <Stack>
            <Title order={1}>
              <Icon name="mesh" size={22} /> Devmesh
            </Title>
            {notice !== null && (
              <Alert color="yellow" variant="light" role="alert">
                {notice}
              </Alert>
            )}
            <PasswordInput
              label="Master key"
              description="It stays in this tab of the browser and is gone when you close it."
              placeholder="mk_…"
              autoComplete="current-password"
              name="master-key"
              required
              data-autofocus
              autoFocus
              value={key}
              onChange={(event) => setKey(event.currentTarget.value)}
              error={wrong}
              errorProps={{ role: "alert" }}
              visibilityToggleButtonProps={{ "aria-label": "Show the key" }}
            />
            <Button type="submit" loading={checking}>
              Sign in
            </Button>
            <Text size="xs" c="dimmed">
              The first master key was printed when the mesh first started and is kept in{" "}
              <Code>.data/master-key</Code>. The API is described in the{" "}
              <Anchor href="/docs" size="xs" underline="always">
                reference
              </Anchor>
              .
            </Text>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}
