import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api/client.ts";
import { router } from "./routes.tsx";
import "./theme.css";
import { applyTheme } from "./ui/theme.ts";

applyTheme();
createRoot(document.getElementById("dashboard")!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
