import type { ReactNode } from "react";
import type { Needs } from "../button.tsx";
import { Fact, None } from "../page.tsx";
import { Code } from "../text/code-snippet.tsx";
import { EditInPlace } from "./edit-in-place.tsx";

/** The metadata of an object, edited in place. `editor` gets it as a text, which is empty without metadata. */
export function MetadataFact({
  meta = {},
  needs,
  editor,
}: {
  meta: object | undefined;
  needs: Needs;
  editor: (before: string, onClose: () => void) => ReactNode;
}) {
  const text = Object.keys(meta).length === 0 ? "" : JSON.stringify(meta, null, 2);
  return (
    <Fact name="Metadata">
      <EditInPlace
        label="the metadata"
        needs={needs}
        display={text === "" ? <None /> : <Code text={text} label="Copy the metadata" />}
        editor={(onClose) => editor(text, onClose)}
      />
    </Fact>
  );
}
