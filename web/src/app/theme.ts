import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

/** A blue-green whose darker half carries white text. */
const tide: MantineColorsTuple = [
  "#eaf5f7",
  "#d5e8ec",
  "#a9d1da",
  "#79bac7",
  "#52a5b6",
  "#37939f",
  "#1f7f8f",
  "#0f6c7c",
  "#065b6a",
  "#034854",
];

/** Calm and dense; the shades are chosen so that text on them has the contrast that WCAG AA asks for. */
export const theme = createTheme({
  colors: { tide },
  primaryColor: "tide",
  primaryShade: { light: 7, dark: 7 },
  defaultRadius: "sm",
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  headings: { fontWeight: "600", sizes: { h1: { fontSize: "1.375rem", lineHeight: "1.3" } } },
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { size: "sm" } },
    Table: { defaultProps: { verticalSpacing: 6, horizontalSpacing: "sm" } },
    Modal: { defaultProps: { centered: true, closeButtonProps: { "aria-label": "Close" } } },
    TableTh: { defaultProps: { style: { whiteSpace: "nowrap" } } },
  },
});

/** Mantine's own dimmed text is too faint for WCAG AA. `--surface-*` and `--state-*` are for our own style sheets. */
export const accessibleColors: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#5c636a",
    "--mantine-color-placeholder": "#6a7178",
    "--mantine-color-anchor": "var(--mantine-color-tide-7)",
    "--mantine-color-error": "var(--mantine-color-red-9)",
    "--surface-raised": "var(--mantine-color-gray-0)",
    "--surface-selected": "var(--mantine-color-tide-0)",
    "--state-good": "var(--mantine-color-teal-7)",
    "--state-idle": "var(--mantine-color-gray-5)",
  },
  dark: {
    "--mantine-color-dimmed": "#a3a8ae",
    "--mantine-color-placeholder": "#979ca3",
    "--mantine-color-anchor": "var(--mantine-color-tide-3)",
    "--mantine-color-error": "var(--mantine-color-red-4)",
    "--surface-raised": "var(--mantine-color-dark-6)",
    "--surface-selected": "#10333a",
    "--state-good": "var(--mantine-color-teal-5)",
    "--state-idle": "var(--mantine-color-dark-2)",
  },
});
