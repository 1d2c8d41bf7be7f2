import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { ChevronDown, ChevronRight } from "lucide-react";
import type { ReactNode } from "react";

/** Properties of {@link Fold}. */
interface FoldProps {
  readonly label: string;
  /** What is in it must be seen, such as an error. */
  readonly needed?: boolean;
  readonly children: ReactNode;
}

/** Fields that few need: hidden until they are wanted. */
export function Fold({ label, needed = false, children }: FoldProps) {
  const [opened, { toggle }] = useDisclosure(false);
  const isShown = opened || needed;
  return (
    <>
      <Button
        variant="subtle"
        size="compact-sm"
        w="fit-content"
        aria-expanded={isShown}
        leftSection={isShown ? <ChevronDown size={16} /> : <ChevronRight size={16} />}
        onClick={toggle}
      >
        {label}
      </Button>
      {isShown && children}
    </>
  );
}
