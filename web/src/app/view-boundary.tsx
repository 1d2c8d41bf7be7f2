import { Anchor, Button, Group } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { Failure } from "../components/failure.tsx";
import { Page } from "../components/page.tsx";

interface ViewBoundaryProps {
  /** Path of the page; another one clears the failure. */
  readonly location: string;
  readonly children: ReactNode;
}

/** Limits a failure to its view; one cause is a new release, whose files an open page cannot load. */
export class ViewBoundary extends Component<
  ViewBoundaryProps,
  { readonly error: unknown; readonly failed: boolean }
> {
  override state = { error: null as unknown, failed: false };

  static getDerivedStateFromError(error: unknown) {
    return { error, failed: true };
  }

  override componentDidUpdate({ location }: ViewBoundaryProps) {
    if (this.state.failed && location !== this.props.location) this.setState({ error: null, failed: false });
  }

  override render(): ReactNode {
    if (!this.state.failed) return this.props.children;
    return (
      <Page title="This view failed">
        <Failure error={this.state.error} title="The view could not be shown" />
        <Group>
          <Button onClick={() => window.location.reload()}>Reload the page</Button>
          <Anchor href="/devices">Go to the devices</Anchor>
        </Group>
      </Page>
    );
  }
}
