import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";
import { Page } from "../components/page.tsx";

/** The page for an unknown path. */
export function NotFound() {
  return (
    <Page title="There is no such page">
      <Text>
        Go on to the{" "}
        <Anchor component={Link} href="/devices" underline="always">
          devices
        </Anchor>
        .
      </Text>
    </Page>
  );
}
