import { Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Fold } from "../../components/fold.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { FileField, useHashedFile } from "./file-field.tsx";
import { emptyFirmware, nameAndVersion, readFirmware, type TypedFirmware } from "./typed-firmware.ts";
import { useUpload } from "./use-upload.ts";

/** Declares firmware and begins the upload of its file. */
export function AddFirmware({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const queries = useQueryClient();
  const upload = useUpload();
  const form = useForm<TypedFirmware>({ initialValues: emptyFirmware });
  const [hashed, choose] = useHashedFile();
  const [missing, setMissing] = useState<string>();
  const creation = useMutation({
    mutationFn: async () => {
      if (hashed?.sha256 == null)
        return setMissing(hashed === null ? "Choose a file." : "It is still being read.");
      const { file, sha256 } = hashed;
      const { body, faults } = readFirmware(form.values, { size: file.size, sha256 });
      form.setErrors(faults);
      if (body === null) return;
      const firmware = await api.call("createFirmware", { body });
      await queries.invalidateQueries({ queryKey: queryKeys.firmware });
      upload(firmware, file);
      onClose();
    },
  });
  const onChoose = (file: File | null) => {
    setMissing(undefined);
    choose(file);
    if (file === null) return;
    const { name, version } = form.values;
    const guessed = nameAndVersion(file.name);
    form.setValues({
      name: name === "" ? guessed.name : name,
      version: version === "" ? guessed.version : version,
    });
  };
  return (
    <FormDialog
      title="Upload firmware"
      action="Upload"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        creation.mutate();
      }}
      work={creation}
      failure="The firmware was refused"
      result={null}
      onClose={onClose}
    >
      <FileField hashed={hashed} onChoose={onChoose} error={missing} />
      <TextInput
        label="Name"
        description="What it is called; the name with the version is unique."
        autoComplete="off"
        {...form.getInputProps("name")}
      />
      <TextInput
        label="Version"
        description="Any text. Devices that report it are up to date."
        autoComplete="off"
        spellCheck={false}
        {...form.getInputProps("version")}
      />
      <TextInput
        label="Only for devices with"
        description="A condition as in the list of devices. Others are not sent the file. Optional."
        placeholder="label:pump-v2"
        autoComplete="off"
        spellCheck={false}
        {...form.getInputProps("requires")}
      />
      <Fold label="More" needed={["reported_as", "signature", "note"].some((name) => form.errors[name])}>
        <TextInput
          label="Reported as"
          description="What a device reports that runs it, if not the version."
          autoComplete="off"
          spellCheck={false}
          {...form.getInputProps("reported_as")}
        />
        <Textarea
          label="Signature"
          description="Over the SHA-256, in base64, for devices that check it."
          autosize
          minRows={2}
          maxRows={6}
          spellCheck={false}
          {...form.getInputProps("signature")}
        />
        <Textarea label="Note" autosize minRows={2} maxRows={6} {...form.getInputProps("note")} />
      </Fold>
    </FormDialog>
  );
}
