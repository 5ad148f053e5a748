import { useState } from "react";
import { useViews, viewProblem } from "../../api/views.ts";
import { Button } from "../button.tsx";
import { TextField } from "../fields/fields.tsx";
import { Dialog } from "../overlays/dialog.tsx";

/** Asks for the name of a view, and keeps it. */
export default function SaveView({ address, onClose }: { address: string; onClose: () => void }) {
  const { views, save } = useViews();
  const [name, setName] = useState("");
  const [error, setError] = useState<unknown>();
  const view = { name: name.trim(), address };
  const problem = viewProblem(views, view);
  const submit = () => {
    if (problem !== undefined) return;
    try {
      save(view);
      onClose();
    } catch (error) {
      setError(error);
    }
  };
  return (
    <Dialog
      title="Save this view"
      isOpen
      onClose={onClose}
      onSubmit={submit}
      error={error}
      size="sm"
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" offBecause={problem}>
            Save view
          </Button>
        </>
      }
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        autoFocus
        problem={view.name === "" ? undefined : problem}
        description="This browser keeps the filters and the order for this workspace. To share them, copy the address of the page."
      />
    </Dialog>
  );
}
