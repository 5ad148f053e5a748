import { LatchkeyError } from "@latchkey/sdk";
import { EmptyState } from "./empty-state.tsx";
import { ErrorBox } from "./error-box.tsx";
import { Skeleton, SkeletonRows } from "./skeleton.tsx";
import { TextWithCode } from "./text-with-code.tsx";

/** In the place of what is being read: lines, or the rows of a table, or why it cannot be read. */
export function Loading({
  of: { error, refetch },
  lines,
  rows,
}: {
  of: { error: unknown; refetch: () => unknown };
  lines?: number;
  /** The number of rows, if it is a table. */
  rows?: number;
}) {
  if (error instanceof LatchkeyError && error.status === 403) {
    return (
      <EmptyState title="The root key may not read this">
        <p>
          <TextWithCode text={error.detail} />
        </p>
      </EmptyState>
    );
  }
  if (error) return <ErrorBox error={error} retry={() => void refetch()} />;
  return rows === undefined ? <Skeleton {...(lines && { lines })} /> : <SkeletonRows count={rows} />;
}
