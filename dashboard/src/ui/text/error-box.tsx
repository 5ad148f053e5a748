import { CircleAlert } from "lucide-react";
import { explain } from "../../api/explain.ts";
import { Button } from "../button.tsx";
import { CopyButton } from "./copy-button.tsx";
import { TextWithCode } from "./text-with-code.tsx";

/** What went wrong: title, detail, how to fix it, and the id of the request. */
export function ErrorBox({ error, retry }: { error: unknown; retry?: () => void }) {
  const { title, detail, errors, requestId, page } = explain(error);
  return (
    <div role="alert" className="appear rounded-md border border-bad/40 bg-bad-soft p-3">
      <p className="flex items-center gap-2 font-medium text-bad">
        <CircleAlert aria-hidden className="size-4 shrink-0" />
        {title}
      </p>
      <p className="mt-1">
        <TextWithCode text={detail} />
      </p>
      {errors.length > 0 && (
        <ul className="mt-2 list-disc space-y-1 pl-5">
          {errors.map(({ field, message, fix }) => (
            <li key={`${field} ${message}`}>
              <code className="font-mono text-xs">{field}</code>:{" "}
              <TextWithCode text={fix === undefined ? message : `${message} ${fix}`} />
            </li>
          ))}
        </ul>
      )}
      <div className="mt-2 flex flex-wrap items-center gap-x-4 gap-y-1">
        {requestId !== undefined && (
          <span className="inline-flex items-center gap-1 text-xs">
            Request <code className="font-mono">{requestId}</code>
            <CopyButton text={requestId} label="Copy the id of the request" />
          </span>
        )}
        {page !== undefined && (
          <a className="link text-xs" href={page} target="_blank" rel="noreferrer">
            About this error
          </a>
        )}
        {retry && <Button onPress={retry}>Try again</Button>}
      </div>
    </div>
  );
}
