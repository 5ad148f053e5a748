import { createContext } from "react";

/** Gets the rows of the table inside in the order in which it shows them: none once it is gone. */
export const ShownRowsContext = createContext<((rows: readonly object[]) => void) | undefined>(undefined);
