/** What each dialog for work on many devices is opened with. */
export interface DevicesDialogProps {
  readonly ids: readonly string[];
  readonly onClose: () => void;
}
