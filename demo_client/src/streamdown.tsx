import type { ReactNode } from "react";

/** Stands for the markdown renderer of CopilotKit's own chat: the text as it is. */
export function Streamdown({ children }: { children?: ReactNode }) {
  return <>{children}</>;
}
