import type { Device } from "@devmesh/contracts/model/device";
import { Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { ChartLine, Copy, KeyRound, Pencil, Trash2 } from "lucide-react";
import { Suspense } from "react";
import { Link, useLocation } from "wouter";
import { lazyView } from "../../../components/lazy-view.ts";
import { MoreActions } from "../../../components/more-actions.tsx";
import { showToast } from "../../../components/toast.tsx";
import { readCommand } from "../connect/clients.ts";

const DeleteDevices = lazyView(async () => (await import("../bulk/delete-devices.tsx")).DeleteDevices);

/** Properties of {@link DeviceMenu}. */
interface DeviceMenuProps {
  readonly device: Device;
  readonly onRename: () => void;
}

/** What is done to a device rarely, its deletion among it. */
export function DeviceMenu({ device: { id }, onRename }: DeviceMenuProps) {
  const [, navigate] = useLocation();
  const [deleting, deletion] = useDisclosure(false);
  return (
    <>
      <MoreActions>
        <Menu.Item leftSection={<Pencil size={16} />} onClick={onRename}>
          Rename
        </Menu.Item>
        <Menu.Item
          leftSection={<Copy size={16} />}
          onClick={() =>
            void navigator.clipboard
              ?.writeText(readCommand(id))
              .then(() => showToast({ title: "The command is copied" }))
          }
        >
          Copy as curl
        </Menu.Item>
        <Menu.Item component={Link} href={`/data?device=${id}`} leftSection={<ChartLine size={16} />}>
          Records
        </Menu.Item>
        <Menu.Item component={Link} href={`/devices/${id}/credentials`} leftSection={<KeyRound size={16} />}>
          Replace the token
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item data-danger leftSection={<Trash2 size={16} />} onClick={deletion.open}>
          Delete the device
        </Menu.Item>
      </MoreActions>
      {deleting && (
        <Suspense>
          <DeleteDevices ids={[id]} onClose={deletion.close} onStarted={() => navigate("/devices")} />
        </Suspense>
      )}
    </>
  );
}
