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

/** The theme; its shades give text the contrast of WCAG AA. */
export const theme = createTheme({
  colors: { tide },
  primaryColor: "tide",
  primaryShade: { light: 7, dark: 7 },
  defaultRadius: "sm",
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "1.375rem", lineHeight: "1.3" },
      h2: { fontSize: "1.125rem", lineHeight: "1.45" },
    },
  },
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { size: "sm" } },
    Table: { defaultProps: { verticalSpacing: 6, horizontalSpacing: "sm" } },
    Modal: { defaultProps: { centered: true, closeButtonProps: { "aria-label": "Close" } } },
    TableTh: { defaultProps: { style: { whiteSpace: "nowrap" } } },
  },
});

/** Background, hovered background, and text of Mantine's variant `light`. */
function tinted(color: string, ground: string, hovered: string, text: string): Record<string, string> {
  return {
    [`--mantine-color-${color}-light`]: ground,
    [`--mantine-color-${color}-light-hover`]: hovered,
    [`--mantine-color-${color}-light-color`]: text,
  };
}

/** Dark enough for the white text of destructive buttons. */
const filledRed = {
  "--mantine-color-red-filled": "var(--mantine-color-red-9)",
  "--mantine-color-red-filled-hover": "#b02525",
};

/**
 * Mantine's own dimmed and tinted texts are too faint for WCAG AA. `--surface-*` and `--state-*` are for our own style
 * sheets.
 */
export const accessibleColors: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#5c636a",
    "--mantine-color-placeholder": "#6a7178",
    "--mantine-color-anchor": "var(--mantine-color-tide-7)",
    "--mantine-color-error": "var(--mantine-color-red-9)",
    ...filledRed,
    "--surface-raised": "var(--mantine-color-gray-0)",
    "--surface-selected": "var(--mantine-color-tide-0)",
    "--state-good": "var(--mantine-color-teal-7)",
    "--state-idle": "var(--mantine-color-gray-5)",
    "--shade": "rgb(0 0 0 / 30%)",
    ...tinted("tide", "#e4f1f4", "#d5e8ec", "#034854"),
    ...tinted("teal", "#e6f6f0", "#d6efe5", "#07573f"),
    ...tinted("red", "#fdeeee", "#fbdfdf", "#8a1c1c"),
    ...tinted("yellow", "#fff6dd", "#ffefc2", "#6b4a00"),
    ...tinted("orange", "#fff1e5", "#ffe5d0", "#7a3500"),
  },
  dark: {
    "--mantine-color-dimmed": "#a3a8ae",
    "--mantine-color-placeholder": "#979ca3",
    "--mantine-color-anchor": "var(--mantine-color-tide-2)",
    "--mantine-color-error": "var(--mantine-color-red-4)",
    ...filledRed,
    "--surface-raised": "var(--mantine-color-dark-6)",
    "--surface-selected": "#10333a",
    "--state-good": "var(--mantine-color-teal-5)",
    "--state-idle": "var(--mantine-color-dark-2)",
    "--shade": "rgb(0 0 0 / 80%)",
    ...tinted("tide", "#10333a", "#15424b", "#9fdbe6"),
    ...tinted("teal", "#0f3629", "#144534", "#93e6c6"),
    ...tinted("red", "#43191b", "#562023", "#ffb8b8"),
    ...tinted("yellow", "#3d3210", "#4d3f14", "#ffe08a"),
    ...tinted("orange", "#432a14", "#543519", "#ffc999"),
  },
});
