import { NavLink, type NavLinkProps } from "@mantine/core";
import { Link } from "wouter";

/** Properties of {@link ViewLink}, and others of a `NavLink`. */
interface ViewLinkProps extends NavLinkProps {
  readonly href: string;
  /** It leads to the shown view. */
  readonly active: boolean;
}

/** A link of a navigation. */
export function ViewLink({ active, ...props }: ViewLinkProps) {
  return <NavLink component={Link} active={active} aria-current={active ? "page" : undefined} {...props} />;
}
