import schema from "virtual:operation/apis.createApi";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useCall } from "../../api/client.ts";
import { member, textProblem } from "../../api/schema.ts";
import { Button } from "../../ui/button.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { Dialog } from "../../ui/overlays/dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";

/** Creates an API and opens it. */
export function CreateApi({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const navigate = useNavigate();
  const create = useCall("apis.createApi");
  const [name, setName] = useState("");
  const problem = textProblem(member(schema, "name"), name);
  const close = () => {
    setName("");
    create.reset();
    onClose();
  };
  const submit = () => {
    if (problem !== undefined) return;
    create.mutate(
      { name },
      {
        onSuccess: ({ data: { apiId } }) => {
          toast({ text: `Created the API ${name}.` });
          close();
          void navigate({ to: "/apis/$apiId", params: { apiId } });
        },
      },
    );
  };
  return (
    <Dialog
      title="Create API"
      isOpen={isOpen}
      onClose={close}
      onSubmit={submit}
      size="sm"
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
          <Button kind="primary" type="submit" isPending={create.isPending} offBecause={problem && "Enter a name"}>
            Create API
          </Button>
        </>
      }
    >
      <TextField
        label="Name"
        description={member(schema, "name").description}
        value={name}
        onChange={setName}
        problem={name === "" ? undefined : problem}
        placeholder="payments"
        autoFocus
      />
      {create.error && <ErrorBox error={create.error} />}
    </Dialog>
  );
}
