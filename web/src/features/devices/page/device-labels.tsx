import { type LabelChanges, labelsOf } from "@devmesh/contracts/model/labels";
import { Popover, TextInput, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Plus, X } from "lucide-react";
import { useState } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { showToast } from "../../../components/toast.tsx";
import styles from "./device-labels.module.css";
import type { SectionProps } from "./section.ts";

/** The labels of a device, each of which can be taken away, and a field for another. */
export function DeviceLabels({ device }: SectionProps) {
  const api = useApi();
  const queries = useQueryClient();
  const [adding, field] = useDisclosure(false);
  const [typed, setTyped] = useState("");
  // The change is relative: labels that others set meanwhile stay.
  const labelling = useMutation({
    mutationFn: (labels: LabelChanges) =>
      api.call("patchDevice", { params: { id: device.id }, body: { labels } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: queryKeys.device(device.id), exact: true }),
    onError: (error) =>
      showToast({ title: "The labels were not changed", text: error.message, failed: true }),
  });
  const add = () => {
    const label = typed.trim();
    field.close();
    setTyped("");
    if (label !== "") labelling.mutate({ add: [label] });
  };
  return (
    <span className={styles.labels}>
      {labelsOf(device.shadow.tags).map((label) => (
        <span key={label} className={styles.label}>
          <span className={styles.text} title={label}>
            {label}
          </span>
          <button
            type="button"
            aria-label={`Remove the label ${label}`}
            disabled={labelling.isPending}
            onClick={() => labelling.mutate({ remove: [label] })}
          >
            <X size={12} />
          </button>
        </span>
      ))}
      <Popover opened={adding} onChange={field.toggle} position="bottom-start" trapFocus returnFocus>
        <Popover.Target>
          <UnstyledButton
            className={styles.add}
            aria-label="Add a label"
            disabled={labelling.isPending}
            onClick={field.toggle}
          >
            <Plus size={12} /> label
          </UnstyledButton>
        </Popover.Target>
        <Popover.Dropdown p={8}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              add();
            }}
          >
            <TextInput
              label="New label"
              description="Enter saves it."
              maxLength={64}
              data-autofocus
              autoComplete="off"
              value={typed}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
          </form>
        </Popover.Dropdown>
      </Popover>
    </span>
  );
}
