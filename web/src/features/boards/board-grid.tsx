import type { BoardPanel } from "@devmesh/contracts/model/board";
import { Paper, VisuallyHidden } from "@mantine/core";
import { Grip, Pencil, Trash2 } from "lucide-react";
import { type CSSProperties, type KeyboardEvent, type PointerEvent, useId, useRef, useState } from "react";
import { IconButton } from "../../components/icon-button.tsx";
import styles from "./board-grid.module.css";
import { inOrder, movedBy, type PanelPlace, resizedBy, rowsOf, withPlace } from "./board-layout.ts";
import { Panel } from "./board-panel.tsx";
import { panelTitle } from "./panel-words.ts";

/** Properties of {@link BoardGrid}. */
interface BoardGridProps {
  readonly panels: readonly BoardPanel[];
  /** In place of the range of each panel; empty for those. */
  readonly range: string;
  /** What changes the board; null while it is only shown. */
  readonly editing: {
    readonly onArrange: (panels: readonly BoardPanel[]) => void;
    readonly onEdit: (nth: number) => void;
    readonly onRemove: (nth: number) => void;
  } | null;
}

/** A panel that is dragged: where it was seized, and how it changes. */
interface Drag {
  readonly nth: number;
  readonly pageX: number;
  readonly pageY: number;
  /** Pixels from one cell to the next. */
  readonly column: number;
  readonly row: number;
  readonly isResize: boolean;
}

/** Cells that an arrow key moves by. */
const arrows: Readonly<Record<string, readonly [columns: number, rows: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The panels of a board in its grid; while it is edited, they are arranged by pointer and by keyboard. */
export function BoardGrid({ panels, range, editing }: BoardGridProps) {
  const grid = useRef<HTMLDivElement>(null);
  const drag = useRef<Drag | null>(null);
  const hint = useId();
  /** The panels as they would be after the drag; null without one. */
  const [dragged, setDragged] = useState<readonly BoardPanel[] | null>(null);
  const [said, setSaid] = useState("");
  const shown = dragged ?? panels;

  const seize = (event: PointerEvent<HTMLElement>, nth: number, isResize: boolean) => {
    if (grid.current === null || event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    const { columnGap, rowGap, gridTemplateColumns, gridAutoRows } = getComputedStyle(grid.current);
    drag.current = {
      nth,
      pageX: event.pageX,
      pageY: event.pageY,
      column: Number.parseFloat(gridTemplateColumns) + Number.parseFloat(columnGap),
      row: Number.parseFloat(gridAutoRows) + Number.parseFloat(rowGap),
      isResize,
    };
  };
  const follow = (event: PointerEvent) => {
    if (drag.current === null) return;
    const { nth, pageX, pageY, column, row, isResize } = drag.current;
    const panel = panels[nth];
    if (panel === undefined) return;
    const by = [Math.round((event.pageX - pageX) / column), Math.round((event.pageY - pageY) / row)] as const;
    setDragged(withPlace(panels, nth, (isResize ? resizedBy : movedBy)(panel, ...by)));
  };
  const drop = () => {
    if (drag.current !== null && dragged !== null && differ(panels, dragged)) editing?.onArrange(dragged);
    release();
  };
  const release = () => {
    drag.current = null;
    setDragged(null);
  };
  const step = (event: KeyboardEvent, nth: number) => {
    if (event.key === "Escape") return release();
    const by = arrows[event.key];
    const panel = panels[nth];
    if (by === undefined || panel === undefined || !event.shiftKey) return;
    event.preventDefault();
    const place = (event.ctrlKey || event.metaKey ? resizedBy : movedBy)(panel, ...by);
    const arranged = withPlace(panels, nth, place);
    if (differ(panels, arranged)) editing?.onArrange(arranged);
    setSaid(`${panelTitle(panel)}: ${placeText(arranged[nth] ?? panel)}`);
  };

  return (
    <>
      <div
        ref={grid}
        className={styles.grid}
        data-editing={editing !== null || undefined}
        style={{ "--rows": rowsOf(shown) } as CSSProperties}
      >
        {inOrder(panels).map((nth) => {
          const panel = shown[nth];
          if (panel === undefined) return null;
          const title = panelTitle(panel);
          return (
            <Paper
              key={nth}
              withBorder
              component="section"
              aria-label={title}
              className={styles.panel}
              data-dragged={(dragged !== null && drag.current?.nth === nth) || undefined}
              style={{
                gridColumn: `${panel.x + 1} / span ${panel.w}`,
                gridRow: `${panel.y + 1} / span ${panel.h}`,
              }}
            >
              <Panel
                panel={panel}
                range={range}
                controls={
                  editing !== null && (
                    <>
                      <IconButton
                        label={`Arrange ${title}`}
                        tooltip="Drag it, or press Shift and an arrow key"
                        aria-describedby={hint}
                        className={styles.handle}
                        onPointerDown={(event) => seize(event, nth, false)}
                        onPointerMove={follow}
                        onPointerUp={drop}
                        onPointerCancel={release}
                        onKeyDown={(event) => step(event, nth)}
                      >
                        <Grip size={16} />
                      </IconButton>
                      <IconButton label={`Edit ${title}`} tooltip="Edit" onClick={() => editing.onEdit(nth)}>
                        <Pencil size={16} />
                      </IconButton>
                      <IconButton
                        label={`Remove ${title}`}
                        tooltip="Remove"
                        onClick={() => editing.onRemove(nth)}
                      >
                        <Trash2 size={16} />
                      </IconButton>
                    </>
                  )
                }
              />
              {editing !== null && (
                <div
                  className={styles.corner}
                  aria-hidden="true"
                  onPointerDown={(event) => seize(event, nth, true)}
                  onPointerMove={follow}
                  onPointerUp={drop}
                  onPointerCancel={release}
                />
              )}
            </Paper>
          );
        })}
      </div>
      <VisuallyHidden id={hint}>
        Press Shift and an arrow key to move it, with Control, too, to resize it.
      </VisuallyHidden>
      <VisuallyHidden role="status" aria-live="polite">
        {said}
      </VisuallyHidden>
    </>
  );
}

/** A place in words, counted from 1. */
function placeText({ x, y, w, h }: PanelPlace): string {
  return `column ${x + 1}, row ${y + 1}, ${w} wide, ${h} high`;
}

function differ(before: readonly PanelPlace[], after: readonly PanelPlace[]): boolean {
  return before.some((one, nth) => {
    const other = after[nth];
    return (
      other === undefined || one.x !== other.x || one.y !== other.y || one.w !== other.w || one.h !== other.h
    );
  });
}
