import { PasswordInput, Text } from "@mantine/core";
import { isNotEmpty, useForm } from "@mantine/form";
import { useMutation } from "@tanstack/react-query";
import { createApiClient } from "../api/api-client.ts";
import { FormDialog } from "../components/form-dialog.tsx";
import { withEnteredKey } from "./entered-key.ts";

/** The dialog that takes a master key after checking it with a request. */
export function MasterKeyPrompt({ onAnswer }: { readonly onAnswer: (key: string | null) => void }) {
  const form = useForm({ initialValues: { key: "" }, validate: { key: isNotEmpty("Enter a key.") } });
  const checking = useMutation({
    mutationFn: (key: string) =>
      withEnteredKey(key, async () => {
        await createApiClient({ key }).call("listDevices", { query: { limit: 1 } });
        return key;
      }),
    onSuccess: onAnswer,
  });
  return (
    <FormDialog
      title="Enter a master key"
      action="Continue"
      noValidate
      onSubmit={form.onSubmit(({ key }) => checking.mutate(key.trim()))}
      work={checking}
      failure="The key was not accepted"
      result={null}
      onClose={() => onAnswer(null)}
    >
      <Text size="sm">A session can neither read nor make secrets.</Text>
      <PasswordInput
        label="Master key"
        description="This page remembers it for ten minutes and stores it nowhere."
        placeholder="mk_…"
        autoComplete="current-password"
        required
        data-autofocus
        {...form.getInputProps("key")}
        errorProps={{ role: "alert" }}
        visibilityToggleButtonProps={{ "aria-label": "Show the key" }}
        // Escape closes this dialog alone: one may be open below it.
        data-mantine-stop-propagation="true"
        onKeyDown={({ key }) => {
          if (key === "Escape") onAnswer(null);
        }}
      />
    </FormDialog>
  );
}
