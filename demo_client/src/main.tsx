import { CopilotKitProvider } from "@copilotkit/react-core/v2";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import "./style.css";

createRoot(document.getElementById("root")!).render(
  <CopilotKitProvider runtimeUrl="/copilotkit">
    <App />
  </CopilotKitProvider>,
);
