/** Paths on a grid of 24, drawn as lines. */
const paths = {
  devices: "M5 4h14v10H5zM3 18h18M9 14v4m6-4v4",
  data: "M4 19V5m0 14h16M8 15l3-4 3 2 5-7",
  keys: "M14 10a4 4 0 1 0-3.5 4l1.5 1.5H14V18h2.5v2H20v-3.5l-5.2-5.2A4 4 0 0 0 14 10zM9 9h.01",
  customers:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zm-6 9c0-3.5 2.5-6 6-6s6 2.5 6 6m1-15.5a3.5 3.5 0 0 1 0 6M18 14.5c2 .8 3 2.8 3 5.5",
  mesh: "M12 12 6 6m6 6 6-6m-6 6-6 6m6-6 6 6M12 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM5 6.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zm14 0a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM5 20.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zm14 0a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z",
  reference: "M8 5 3 12l5 7m8-14 5 7-5 7M14 4l-4 16",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v3m0 14v3M2 12h3m14 0h3M5 5l2 2m10 10 2 2M5 19l2-2M17 7l2-2",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  "sign-out": "M10 4H5v16h5m4-4 4-4-4-4m4 4H9",
  eye: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "m4 12 5 6L20 6",
  delete: "M4 7h16M10 4h4M6 7l1 13h10l1-13M10 11v5m4-5v5",
  add: "M12 5v14m-7-7h14",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM20 20l-5-5",
  label: "M3 12V4h8l10 10-8 8zM7.5 8.5h.01",
  call: "M4 6h16v10H9l-5 4z",
  ascending: "M12 19V5m-6 6 6-6 6 6",
  descending: "M12 5v14m6-6-6 6-6-6",
  expand: "m9 5 7 7-7 7",
  warning: "M12 4 2.5 20h19zM12 10v5m0 2.5v.01",
} as const;

/** Which pictures there are. */
export type IconName = keyof typeof paths;

/** A picture beside a text, or in a control with a label of its own; silent for screen readers. */
export function Icon({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
      style={{ flex: "none", verticalAlign: "-0.15em" }}
    >
      <path d={paths[name]} />
    </svg>
  );
}
