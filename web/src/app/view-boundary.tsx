import { Anchor, Button, Group } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { Failure } from "../elements/failure.tsx";
import { Page } from "../elements/page.tsx";

interface ViewBoundaryProps {
  /** Where the page is: who goes elsewhere leaves the failure behind. */
  readonly location: string;
  readonly children: ReactNode;
}

/** Keeps a view that fails from taking the frame along; a new release's files, which an open page lacks, among the causes. */
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
