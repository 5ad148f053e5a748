import schema from "virtual:operation/holds.settleHold";
import { useState } from "react";
import type { Entry } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { member, numberProblem } from "../../api/schema.ts";
import { TextField } from "../../ui/fields/fields.tsx";
import { whole } from "../../ui/fields/refill-field.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";

/** Charges by hand what the work of a hold did cost, for a caller that cannot do it any more. */
export function SettleHold({
  of: { holdId, apiId, credits },
  onClose,
}: {
  of: Entry<"holds.listHolds">;
  onClose: () => void;
}) {
  const [cost, setCost] = useState(String(credits));
  const problem = numberProblem(member(schema, "credits"), whole(cost));
  return (
    <FormDialog
      title="Settle the hold"
      operation="holds.settleHold"
      input={{ holdId, credits: whole(cost) }}
      problem={problem}
      action="Settle hold"
      needs={`apis.${apiId}.verify_key`}
      size="sm"
      onClose={onClose}
      onDone={({ data: { charged, uncovered } }) => {
        const lack = uncovered > 0 ? ` Not covered: ${counted(uncovered, "credit")}.` : "";
        toast({ text: `Charged ${counted(charged, "credit")}.${lack}` });
        onClose();
      }}
    >
      <p>
        It holds {counted(credits, "credit")}. The rest is given back. A later settlement by its caller with another
        amount gets 409.
      </p>
      <TextField
        label="Credits"
        type="number"
        description={member(schema, "credits").description}
        value={cost}
        onChange={setCost}
        problem={problem}
        autoFocus
      />
    </FormDialog>
  );
}
