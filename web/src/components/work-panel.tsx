import { Button, Group, List, Paper, Progress, Stack, Text } from "@mantine/core";
import { X } from "lucide-react";
import { useEffect, useRef } from "react";
import { type BackgroundWork, useBackgroundWork } from "./background-work.ts";
import { IconButton } from "./icon-button.tsx";
import { countText } from "./number-text.ts";

/** Failures that are listed. */
const mostListed = 100;

/** The progress of all work in a corner of each page. */
export function WorkPanel() {
  const [works, update] = useBackgroundWork();
  const isWorking = works.some(({ state }) => state === "running");
  const current = useRef(works);
  useEffect(() => {
    current.current = works;
  }, [works]);
  useEffect(
    () => () => {
      for (const { cancel } of current.current) cancel();
    },
    [],
  );
  useEffect(() => {
    if (!isWorking) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [isWorking]);
  return (
    <Stack
      component="section"
      aria-label="Work in progress"
      gap="xs"
      pos="fixed"
      // Above the bar of a selection.
      bottom="calc(var(--bar) + 76px)"
      right="1rem"
      w="min(26rem, calc(100vw - 2rem))"
      mah="70dvh"
      style={{ overflow: "auto", zIndex: 150 }}
    >
      {works.map((work) => (
        <WorkCard
          key={work.key}
          work={work}
          onClose={() => update((before) => before.filter(({ key }) => key !== work.key))}
        />
      ))}
    </Stack>
  );
}

interface OneWorkProps {
  readonly work: BackgroundWork;
  readonly onClose: () => void;
}

function WorkCard({ work, onClose }: OneWorkProps) {
  const { title, state, share, text, cancel, next = [], failures = [] } = work;
  const hasEnded = state !== "running";
  return (
    <Paper withBorder shadow="md" p="sm" flex="none">
      <Stack gap="xs">
        <Group justify="space-between" wrap="nowrap" gap="xs">
          <Text size="sm" fw={600} lineClamp={2}>
            {title}
          </Text>
          {hasEnded ? (
            <IconButton label={`Close: ${title}`} tooltip="Close" onClick={onClose}>
              <X size={16} />
            </IconButton>
          ) : (
            <Button size="compact-xs" variant="default" flex="none" onClick={cancel}>
              Cancel
            </Button>
          )}
        </Group>
        <Progress value={share * 100} color={colourOf(work)} aria-label={`Progress: ${title}`} />
        <Text size="sm" role="status" style={{ overflowWrap: "anywhere" }}>
          {text}
        </Text>
        {failures.length > 0 && (
          <Paper
            withBorder
            component="section"
            mah="9rem"
            px="xs"
            style={{ overflow: "auto" }}
            aria-label="What failed"
            tabIndex={0}
          >
            <List listStyleType="none">
              {failures.slice(0, mostListed).map(({ name, text: why }) => (
                <Text component="li" key={name} size="sm" title={why} truncate>
                  <b>{name}</b> {why}
                </Text>
              ))}
              {failures.length > mostListed && (
                <Text component="li" size="sm" c="dimmed">
                  and {countText(failures.length - mostListed)} more
                </Text>
              )}
            </List>
          </Paper>
        )}
        {hasEnded && next.length > 0 && (
          <Group gap="xs">
            {next.map(({ label, run }) => (
              <Button
                key={label}
                size="compact-xs"
                variant="default"
                onClick={() => {
                  onClose();
                  run();
                }}
              >
                {label}
              </Button>
            ))}
          </Group>
        )}
      </Stack>
    </Paper>
  );
}

function colourOf({ state, failures = [] }: BackgroundWork): string {
  if (state === "failed") return "red";
  if (state === "cancelled") return "gray";
  return failures.length > 0 ? "orange" : "green";
}
