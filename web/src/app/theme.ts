import { type CSSVariablesResolver, createTheme } from "@mantine/core";

/** Calm and dense; the shades are chosen so that text on them has the contrast that WCAG AA asks for. */
export const theme = createTheme({
  primaryColor: "cyan",
  primaryShade: { light: 9, dark: 8 },
  defaultRadius: "sm",
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  headings: { fontWeight: "600", sizes: { h1: { fontSize: "1.375rem", lineHeight: "1.3" } } },
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { size: "sm" } },
    Table: { defaultProps: { verticalSpacing: 6, horizontalSpacing: "sm" } },
    Modal: { defaultProps: { centered: true, closeButtonProps: { "aria-label": "Close" } } },
  },
});

/** Mantine's own dimmed text is too faint for WCAG AA. */
export const accessibleColors: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#5c636a",
    "--mantine-color-placeholder": "#6a7178",
    "--mantine-color-anchor": "var(--mantine-color-cyan-9)",
    "--mantine-color-error": "var(--mantine-color-red-9)",
  },
  dark: {
    "--mantine-color-dimmed": "#a3a8ae",
    "--mantine-color-placeholder": "#979ca3",
    "--mantine-color-anchor": "var(--mantine-color-cyan-4)",
    "--mantine-color-error": "var(--mantine-color-red-4)",
  },
});
