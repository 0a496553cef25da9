import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // CopilotKit's own chat, which this page does not use, would bring diagrams and highlighters of every language
  resolve: { alias: { streamdown: fileURLToPath(new URL("src/streamdown.tsx", import.meta.url)) } },
  build: {
    outDir: "../agui_bridge/web/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false }, // it would be an inline script, which the policy forbids
    chunkSizeWarningLimit: 4000,
  },
});
