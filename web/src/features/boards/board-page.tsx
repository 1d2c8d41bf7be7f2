import { type BoardPanel, boardBounds } from "@devmesh/contracts/model/board";
import { Button, Menu, NativeSelect } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { LayoutDashboard, Maximize, Minimize, Pencil, Plus, Trash2 } from "lucide-react";
import { Suspense, useEffect, useEffectEvent, useRef, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { Confirmation } from "../../components/confirmation.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Failure } from "../../components/failure.tsx";
import { IconButton } from "../../components/icon-button.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { MoreActions } from "../../components/more-actions.tsx";
import { Page } from "../../components/page.tsx";
import { showToast } from "../../components/toast.tsx";
import { useAddress } from "../../components/use-address.ts";
import { Waiting } from "../../components/waiting.tsx";
import { durationChoices, isChartDuration } from "../data/chart-ranges.ts";
import { BoardGrid } from "./board-grid.tsx";
import { withPlace } from "./board-layout.ts";
import styles from "./board-page.module.css";
import { panelTitle } from "./panel-words.ts";
import { useBoard } from "./use-board.ts";
import { WallState } from "./wall-state.tsx";

const RenameBoard = lazyView(async () => (await import("./name-board.tsx")).RenameBoard);
const PanelForm = lazyView(async () => (await import("./panel-form.tsx")).PanelForm);

/** State of the page in its address: it is edited, fills the screen, has one range for all panels. */
const defaults = { edit: "", full: "", range: "" };

/** What the dialog of a panel was opened with. */
interface EditedPanel {
  /** Index of the panel; null for a new one. */
  readonly nth: number | null;
  readonly panels: readonly BoardPanel[];
  readonly revision: number;
}

/** A board by its address: charts and values of devices, kept current. */
export function BoardPage() {
  const { id = "" } = useParams();
  const api = useApi();
  const [, navigate] = useLocation();
  const [{ edit, full, range }, change] = useAddress(defaults);
  const [renaming, rename] = useDisclosure(false);
  const [deleting, deletion] = useDisclosure(false);
  const [edited, setEdited] = useState<EditedPanel | null>(null);
  const used = useBoard(id);
  const { board } = used;
  const latest = useRef(used);
  useEffect(() => {
    latest.current = used;
  });
  const shownRange = isChartDuration(range) ? range : "";
  const isFull = full === "1";
  const isEdited = edit === "1" && !isFull;
  useFullScreen(isFull, () => change({ full: "" }));
  if (board === undefined)
    return (
      <Page title="Board" above={<Link href="/boards">Boards</Link>}>
        <Failure error={used.error} title="The board could not be read" onRetry={used.readAgain} />
        {used.error === null && <Waiting />}
      </Page>
    );
  const { name, panels, revision } = board;
  const open = (nth: number | null) => setEdited({ nth, panels, revision });
  const isWhole = panels.length >= boardBounds.panels;
  const add = (
    <Button leftSection={<Plus size={16} />} disabled={isWhole} onClick={() => open(null)}>
      Add panel
    </Button>
  );
  const remove = (nth: number) => {
    const removed = panels[nth];
    if (removed === undefined) return;
    used.change({ panels: panels.filter((_, each) => each !== nth) });
    showToast({
      title: `${panelTitle(removed)} is removed`,
      action: {
        label: "Undo",
        run() {
          const { board: now, change: put } = latest.current;
          if (now === undefined) return;
          const whole = [...now.panels, removed];
          put({ panels: withPlace(whole, whole.length - 1, removed) });
        },
      },
    });
  };
  return (
    <div className={styles.board} data-wall={isFull || undefined}>
      <Page
        title={name}
        part="Board"
        above={isFull ? undefined : <Link href="/boards">Boards</Link>}
        actions={
          <>
            {isFull && <WallState />}
            <NativeSelect
              aria-label="Time that all panels show"
              value={shownRange}
              onChange={({ currentTarget }) => change({ range: currentTarget.value })}
              data={[{ value: "", label: "As set" }, ...durationChoices]}
            />
            {isEdited && panels.length > 0 && add}
            {!isFull && (
              <Button
                variant="default"
                leftSection={isEdited ? undefined : <Pencil size={16} />}
                onClick={() => change({ edit: isEdited ? "" : "1" })}
              >
                {isEdited ? "Done" : "Edit"}
              </Button>
            )}
            <IconButton
              label={isFull ? "Leave the full screen" : "Full screen"}
              variant="default"
              size="lg"
              onClick={() => {
                if (!isFull) void document.documentElement.requestFullscreen?.().catch(() => {});
                change({ full: isFull ? "" : "1", edit: "" });
              }}
            >
              {isFull ? <Minimize size={16} /> : <Maximize size={16} />}
            </IconButton>
            {!isFull && (
              <MoreActions>
                <Menu.Item leftSection={<Pencil size={16} />} onClick={rename.open}>
                  Rename
                </Menu.Item>
                <Menu.Divider />
                <Menu.Item data-danger leftSection={<Trash2 size={16} />} onClick={deletion.open}>
                  Delete the board
                </Menu.Item>
              </MoreActions>
            )}
          </>
        }
      >
        <SaveState used={used} />
        {panels.length === 0 ? (
          <EmptyState Icon={LayoutDashboard} title="No panels yet">
            <p>A panel is a chart or a value: choose devices, and one of the numbers that they publish.</p>
            {add}
          </EmptyState>
        ) : (
          <BoardGrid
            panels={panels}
            range={shownRange}
            editing={
              isEdited
                ? {
                    onArrange: (arranged) => used.change({ panels: arranged }),
                    onEdit: open,
                    onRemove: remove,
                  }
                : null
            }
          />
        )}
      </Page>
      <Suspense>
        {renaming && (
          <RenameBoard
            name={name}
            onRename={(named) => used.change({ name: named }, revision)}
            onClose={rename.close}
          />
        )}
        {edited !== null && (
          <PanelForm
            panel={edited.panels[edited.nth ?? -1] ?? null}
            panels={edited.panels}
            onSave={(made) => {
              const { nth, panels: before, revision: read } = edited;
              const after =
                nth === null ? [...before, made] : before.map((each, at) => (at === nth ? made : each));
              used.change({ panels: after }, read);
              if (nth === null) change({ edit: "1" });
            }}
            onClose={() => setEdited(null)}
          />
        )}
      </Suspense>
      {deleting && (
        <Confirmation
          title={`Delete the board ${name}?`}
          action="Delete"
          run={async () => {
            await api.call("deleteBoard", { params: { id } });
            navigate("/boards");
          }}
          onClose={deletion.close}
        >
          It is gone for all who sign in here. The numbers that it shows stay.
        </Confirmation>
      )}
    </div>
  );
}

/** Why the last change is not saved. */
function SaveState({ used }: { readonly used: ReturnType<typeof useBoard> }) {
  const { failure, isConflict, saveAgain } = used;
  if (isConflict)
    return (
      <Failure
        error="It is shown as it is now, without your last change: make that again."
        title="Somebody else changed the board"
      />
    );
  return <Failure error={failure} title="The board was not saved" onRetry={saveAgain} />;
}

/** Leaves the view that fills the screen when the browser leaves its full screen, as by Escape. */
function useFullScreen(isFull: boolean, onLeave: () => void): void {
  const leave = useEffectEvent(onLeave);
  useEffect(() => {
    if (!isFull) return;
    const onChange = () => {
      if (document.fullscreenElement === null) leave();
    };
    const onKey = ({ key }: KeyboardEvent) => {
      if (key === "Escape") leave();
    };
    document.addEventListener("fullscreenchange", onChange);
    document.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("fullscreenchange", onChange);
      document.removeEventListener("keydown", onKey);
      // A browser of phones has neither.
      if (document.fullscreenElement) void document.exitFullscreen().catch(() => {});
    };
  }, [isFull]);
}
