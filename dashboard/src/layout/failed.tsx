import { useQueryErrorResetBoundary } from "@tanstack/react-query";
import { type ErrorComponentProps, Link, useRouter } from "@tanstack/react-router";
import { Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/text/empty-state.tsx";
import { ErrorBox } from "../ui/text/error-box.tsx";

/** In the place of a page that could not be shown. */
export function Failed({ error }: ErrorComponentProps) {
  const router = useRouter();
  const { reset } = useQueryErrorResetBoundary();
  return (
    <Page title="This page cannot be shown">
      <ErrorBox
        error={error}
        retry={() => {
          reset();
          void router.invalidate();
        }}
      />
    </Page>
  );
}

/** In the place of a page that does not exist. */
export function Missing() {
  return (
    <Page title="There is no such page">
      <EmptyState
        title="The address may be incomplete, or belong to a newer version of the dashboard."
        action={
          <Link to="/" className="link">
            To the start
          </Link>
        }
      />
    </Page>
  );
}
