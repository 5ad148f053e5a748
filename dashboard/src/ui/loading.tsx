import { ErrorBox } from "./error-box.tsx";
import { Skeleton } from "./skeleton.tsx";

/** In the place of what is being read: lines, or the error with a button that reads again. */
export function Loading({
  of: { error, refetch },
  lines,
}: {
  of: { error: unknown; refetch: () => unknown };
  lines?: number;
}) {
  return error ? <ErrorBox error={error} retry={() => void refetch()} /> : <Skeleton {...(lines && { lines })} />;
}
