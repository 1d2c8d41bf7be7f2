/** Properties of each dialog for work on many devices. */
export interface DevicesDialogProps {
  readonly ids: readonly string[];
  readonly onClose: () => void;
}
