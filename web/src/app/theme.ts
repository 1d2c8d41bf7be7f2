import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

/** A colour of the tokens in place of ten shades. */
function oneShade(variable: string): MantineColorsTuple {
  return [variable, ...Array.from({ length: 9 }, () => variable)] as unknown as MantineColorsTuple;
}

/** The theme: what Mantine's components take from `tokens.css`. */
export const theme = createTheme({
  colors: { accent: oneShade("var(--accent)") },
  primaryColor: "accent",
  autoContrast: false,
  defaultRadius: "md",
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: "'JetBrains Mono Variable', ui-monospace, monospace",
  fontSizes: { xs: "0.75rem", sm: "var(--body)", md: "var(--body)", lg: "1rem", xl: "1.75rem" },
  lineHeights: {
    xs: "1rem",
    sm: "var(--body-line)",
    md: "var(--body-line)",
    lg: "1.5rem",
    xl: "2rem",
  },
  spacing: { xs: "0.5rem", sm: "0.75rem", md: "1rem", lg: "1.25rem", xl: "1.5rem" },
  radius: { xs: "4px", sm: "5px", md: "7px", lg: "10px", xl: "12px" },
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "1.125rem", lineHeight: "1.75rem" },
      h2: { fontSize: "var(--body)", lineHeight: "var(--body-line)" },
      h3: { fontSize: "var(--body)", lineHeight: "var(--body-line)" },
    },
  },
  shadows: { md: "var(--shadow-floating)", xl: "var(--shadow-dialog)" },
  respectReducedMotion: true,
  components: {
    Badge: { defaultProps: { radius: "xl" } },
    Button: { defaultProps: { size: "sm" } },
    Checkbox: { defaultProps: { size: "xs", radius: "xs" } },
    Drawer: { defaultProps: { radius: 0, shadow: "xl" } },
    Menu: { defaultProps: { radius: "lg", shadow: "md", transitionProps: { duration: 160 } } },
    Modal: {
      defaultProps: {
        centered: true,
        radius: "xl",
        shadow: "xl",
        closeButtonProps: { "aria-label": "Close" },
      },
    },
    Paper: { defaultProps: { radius: "lg" } },
    Popover: { defaultProps: { radius: "lg", shadow: "md" } },
    SegmentedControl: { defaultProps: { size: "xs" } },
    Switch: { defaultProps: { size: "sm" } },
    Table: { defaultProps: { verticalSpacing: 8, horizontalSpacing: "md", highlightOnHover: true } },
    Tooltip: { defaultProps: { openDelay: 400 } },
  },
});

/** Mantine's names of the planes, lines and texts; the tokens differ by scheme themselves. */
const tokens = {
  "--mantine-color-body": "var(--canvas)",
  "--mantine-color-text": "var(--text)",
  "--mantine-color-bright": "var(--text)",
  "--mantine-color-dimmed": "var(--text-3)",
  "--mantine-color-placeholder": "var(--text-3)",
  "--mantine-color-anchor": "var(--accent-text)",
  "--mantine-color-error": "var(--bad)",
  "--mantine-color-default": "var(--surface)",
  "--mantine-color-default-hover": "var(--hover)",
  "--mantine-color-default-color": "var(--text)",
  "--mantine-color-default-border": "var(--line-strong)",
  "--mantine-color-disabled": "var(--sunken)",
  "--mantine-color-disabled-color": "var(--text-3)",
  "--mantine-color-disabled-border": "var(--line)",
  "--mantine-primary-color-contrast": "var(--surface)",
  "--mantine-color-accent-light": "var(--accent-soft)",
  "--mantine-color-accent-light-hover": "var(--accent-soft)",
  "--mantine-color-accent-light-color": "var(--accent-text)",
  ...tinted("gray", "idle"),
  ...tinted("teal", "good"),
  ...tinted("green", "good"),
  ...tinted("yellow", "warn"),
  ...tinted("orange", "warn"),
  ...tinted("red", "bad"),
  ...tinted("blue", "info"),
};

/** A colour of Mantine as a state of the tokens. */
function tinted(color: string, state: string): Record<string, string> {
  return {
    [`--mantine-color-${color}-light`]: `var(--${state}-soft)`,
    [`--mantine-color-${color}-light-hover`]: `var(--${state}-soft)`,
    [`--mantine-color-${color}-light-color`]: `var(--${state})`,
    [`--mantine-color-${color}-filled`]: `var(--${state}-dot)`,
    [`--mantine-color-${color}-filled-hover`]: `var(--${state}-dot)`,
    [`--mantine-color-${color}-outline`]: `var(--${state})`,
    [`--mantine-color-${color}-text`]: `var(--${state})`,
  };
}

/** Gives Mantine the tokens in both schemes. */
export const tokenColors: CSSVariablesResolver = () => ({ variables: {}, light: tokens, dark: tokens });
