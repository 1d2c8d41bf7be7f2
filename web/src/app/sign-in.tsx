import { Alert, Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { isNotEmpty, useForm } from "@mantine/form";
import { useMutation } from "@tanstack/react-query";
import { Waypoints } from "lucide-react";
import { useEffect } from "react";
import { checkKey } from "./check-key.ts";
import { useSession } from "./session.tsx";

/** Signs in with a master key after checking it with a request. */
export function SignIn() {
  const { notice, signIn } = useSession();
  const form = useForm({ initialValues: { key: "" }, validate: { key: isNotEmpty("Enter a key.") } });
  const checking = useMutation({
    mutationFn: (key: string) => checkKey(key, ""),
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
