import type { Firmware } from "@devmesh/contracts/model/firmware";
import { Text } from "@mantine/core";
import { useState } from "react";
import { FormDialog } from "../../components/form-dialog.tsx";
import { FileField, useHashedFile } from "./file-field.tsx";
import { useUpload } from "./use-upload.ts";

/** Properties of {@link UploadContent}. */
interface UploadContentProps {
  readonly firmware: Firmware;
  readonly onClose: () => void;
}

/** Begins another upload of the file that was declared: the one before was cut. */
export function UploadContent({ firmware, onClose }: UploadContentProps) {
  const upload = useUpload();
  const [hashed, choose] = useHashedFile();
  const [error, setError] = useState<string>();
  return (
    <FormDialog
      title={`Upload the file of ${firmware.name} ${firmware.version}`}
      action="Upload"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (hashed === null) return setError("Choose a file.");
        if (hashed.sha256 === null) return setError("It is still being read.");
        if (hashed.sha256 !== firmware.sha256)
          return setError("It is another file than the one that was declared.");
        upload(firmware, hashed.file);
        onClose();
      }}
      work={{ isPending: false, error: null }}
      failure=""
      result={null}
      onClose={onClose}
    >
      <Text size="sm">Its upload was cut. Choose the file whose SHA-256 is</Text>
      <Text size="xs" ff="monospace" style={{ overflowWrap: "anywhere" }}>
        {firmware.sha256}
      </Text>
      <FileField
        hashed={hashed}
        onChoose={(file) => {
          setError(undefined);
          choose(file);
        }}
        error={error}
      />
    </FormDialog>
  );
}
