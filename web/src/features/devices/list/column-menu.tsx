import { Columns3 } from "lucide-react";
import { Suspense, useState } from "react";
import { IconButton } from "../../../components/icon-button.tsx";
import { lazyView } from "../../../components/lazy-view.ts";
import type { ColumnChoiceProps } from "./column-choice.tsx";

const ColumnChoice = lazyView(async () => (await import("./column-choice.tsx")).ColumnChoice);

/** The button of the columns; their choice is loaded when it is first opened. */
export function ColumnMenu(props: ColumnChoiceProps) {
  const [wanted, setWanted] = useState(false);
  const button = (
    <IconButton label="Columns" aria-expanded={false} onClick={() => setWanted(true)}>
      <Columns3 size={16} />
    </IconButton>
  );
  if (!wanted) return button;
  return (
    <Suspense fallback={button}>
      <ColumnChoice {...props}>{button}</ColumnChoice>
    </Suspense>
  );
}
