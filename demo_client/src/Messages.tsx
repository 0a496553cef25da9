import type { Message } from "@copilotkit/react-core/v2";
import { memo } from "react";

/** What a round's text was, known once the round is committed. */
export type Role = "working_message" | "final_response";

interface Props {
  messages: readonly Message[];
  roles: Readonly<Record<string, Role>>;
}

export function Messages({ messages, roles }: Props) {
  const results = new Map<string, string>();
  for (const message of messages) {
    if (message.role === "tool") results.set(message.toolCallId, textOf(message.content));
  }
  return (
    <>
      {messages.map((message) => (
        <One key={message.id} message={message} role={roles[message.id]} results={results} />
      ))}
    </>
  );
}

function One({ message, role, results }: { message: Message; role?: Role; results: ReadonlyMap<string, string> }) {
  switch (message.role) {
    case "user":
      return (
        <article className="user" data-message={message.id} aria-label="You">
          {textOf(message.content)}
        </article>
      );
    case "assistant": {
      const calls = message.toolCalls ?? [];
      // a page that comes back has only the snapshot, where a text with calls is a working message
      const settled = role ?? (calls.length > 0 ? "working_message" : undefined);
      return (
        <article className="assistant" data-message={message.id} data-role={settled} aria-label="Assistant">
          {message.content && <p className="text">{textOf(message.content)}</p>}
          {calls.map((call) => (
            <ToolCard key={call.id} name={call.function.name} given={call.function.arguments} result={results.get(call.id)} />
          ))}
        </article>
      );
    }
    case "reasoning":
      return (
        <details className="reasoning" data-message={message.id}>
          <summary>Reasoning</summary>
          {textOf(message.content)}
        </details>
      );
    case "activity":
      return <Activity type={message.activityType} content={message.content} id={message.id} />;
    default:
      return null;
  }
}

const ToolCard = memo(function ToolCard({ name, given, result }: { name: string; given: string; result?: string }) {
  return (
    <details className="tool" data-tool={name} data-state={result === undefined ? "open" : "answered"}>
      <summary>
        <code>{name}</code> {result === undefined ? "waits" : "answered"}
      </summary>
      <pre aria-label="Arguments">{given}</pre>
      {result !== undefined && <pre aria-label="Result">{result}</pre>}
    </details>
  );
});

function Activity({ id, type, content }: { id: string; type: string; content: Record<string, unknown> }) {
  if (type === "agui-bridge.artifact") {
    const { name, media_type: media, size, url } = content as Record<string, string | number | undefined>;
    return (
      <aside className="card" data-message={id} aria-label="Artifact">
        <a href={url === undefined ? undefined : String(url)}>{name}</a> {media}, {size} bytes
      </aside>
    );
  }
  return (
    <aside className="card" data-message={id} aria-label={type}>
      {Object.entries(content)
        .map(([key, value]) => `${key}: ${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
        .join(" · ")}
    </aside>
  );
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: { text?: string }) => part.text ?? "").join("");
}
