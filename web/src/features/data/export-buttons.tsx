import { Button, Menu, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useEffect, useRef } from "react";
import { useApi } from "../../api/api-context.tsx";
import { Failure } from "../../components/failure.tsx";
import { exportLimit, openExportFile } from "./export-file.ts";
import { type ExportFormat, exportFormats, exportRecords } from "./export-records.ts";
import type { RecordChoice } from "./record-selection.ts";

const formats = ["csv", "ndjson"] as const;

/** Shown before an export begins, as it would end there. */
const limit = exportLimit();

/** Writes all records of the selection to a file, also those that are not shown. */
export function ExportButtons({ selection }: { readonly selection: RecordChoice }) {
  const api = useApi();
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const work = useMutation({
    mutationFn: async (format: ExportFormat) => {
      const file = await openExportFile(format);
      if (file === null) return;
      const ending = new AbortController();
      running.current = ending;
      try {
        await exportRecords(api, selection, format, file.target, ending.signal);
        await file.finish();
      } catch (error) {
        if (!ending.signal.aborted) throw error;
      }
    },
  });
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button size="xs" variant="default" leftSection={<Download size={14} />} disabled={work.isPending}>
            Export
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {formats.map((format) => (
            <Menu.Item key={format} onClick={() => work.mutate(format)}>
              As {exportFormats[format].label}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {work.isPending && (
        <Button size="xs" variant="subtle" onClick={() => running.current?.abort()}>
          Cancel the export
        </Button>
      )}
      {limit !== null && (
        <Text size="xs" c="dimmed">
          {window.isSecureContext ? "In this browser" : "Without HTTPS"} an export holds at most{" "}
          {Math.round(limit / 1e6)} MB
        </Text>
      )}
      <Failure error={work.error} title="The export failed" />
    </>
  );
}
