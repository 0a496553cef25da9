import type { Message } from "@copilotkit/react-core/v2";
import { useState } from "react";

export interface OpenInterrupt {
  id: string;
  reason: string;
  message?: string;
  toolCallId?: string;
  responseSchema?: Record<string, unknown>;
}

export interface Answer {
  interruptId: string;
  status: "resolved" | "cancelled";
  payload?: unknown;
}

interface Props {
  interrupts: readonly OpenInterrupt[];
  messages: readonly Message[];
  onAnswer(answers: Answer[]): void;
}

/** Everything that is asked, answered together: a client has to answer all of them in one run. */
export function InterruptCard({ interrupts, messages, onAnswer }: Props) {
  const [given, setGiven] = useState<Record<string, Answer>>({});
  const answer = (one: Answer) => {
    const all = { ...given, [one.interruptId]: one };
    setGiven(all);
    if (interrupts.every(({ id }) => id in all)) onAnswer(interrupts.map(({ id }) => all[id]));
  };
  return (
    <>
      {interrupts
        .filter(({ id }) => !(id in given))
        .map((one) =>
          one.reason === "tool_call" ? (
            <Approval key={one.id} asked={one} call={callOf(messages, one.toolCallId)} onAnswer={answer} />
          ) : (
            <Question key={one.id} asked={one} onAnswer={answer} />
          ),
        )}
    </>
  );
}

function callOf(messages: readonly Message[], id?: string): { name: string; given: string } | undefined {
  for (const message of messages) {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    const found = calls.find((call) => call.id === id);
    if (found) return { name: found.function.name, given: found.function.arguments };
  }
  return undefined;
}

interface Asked {
  asked: OpenInterrupt;
  onAnswer(answer: Answer): void;
}

function Approval({ asked, call, onAnswer }: Asked & { call?: { name: string; given: string } }) {
  const [text, setText] = useState(() => indented(call?.given ?? "{}"));
  const edited = parsed(text);
  return (
    <section className="card ask" aria-label="Approval">
      <h2>{asked.message ?? `May ${call?.name ?? "this tool"} run?`}</h2>
      <textarea aria-label="Arguments" rows={6} value={text} onChange={(event) => setText(event.target.value)} />
      {edited === undefined && <p role="status">The arguments must be a JSON object.</p>}
      <button
        type="button"
        disabled={edited === undefined}
        onClick={() => {
          const changed = JSON.stringify(edited) !== JSON.stringify(parsed(call?.given ?? "{}"));
          const payload = changed ? { approved: true, editedArgs: edited } : { approved: true };
          onAnswer({ interruptId: asked.id, status: "resolved", payload });
        }}
      >
        Approve
      </button>
      <button type="button" className="quiet" onClick={() => onAnswer({ interruptId: asked.id, status: "cancelled" })}>
        Decline
      </button>
    </section>
  );
}

/** A form of the response schema's properties: texts, numbers and yes or no. */
function Question({ asked, onAnswer }: Asked) {
  const properties = (asked.responseSchema?.properties ?? {}) as Record<string, { type?: string; title?: string }>;
  const required = (asked.responseSchema?.required ?? []) as string[];
  return (
    <form
      className="card ask"
      aria-label="Question"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        const payload: Record<string, unknown> = {};
        for (const [name, { type }] of Object.entries(properties)) {
          const value = form.get(name);
          if (type === "boolean") payload[name] = value !== null;
          else if (value === null || (value === "" && !required.includes(name))) continue;
          else payload[name] = type === "number" || type === "integer" ? Number(value) : value;
        }
        onAnswer({ interruptId: asked.id, status: "resolved", payload });
      }}
    >
      <h2>{asked.message}</h2>
      {Object.entries(properties).map(([name, { type, title }]) => (
        <label key={name}>
          {title ?? name}
          {type === "boolean" ? (
            <input type="checkbox" name={name} />
          ) : (
            <input name={name} type={type === "number" || type === "integer" ? "number" : "text"} step="any" required={required.includes(name)} />
          )}
        </label>
      ))}
      <button type="submit">Answer</button>
      <button type="button" className="quiet" onClick={() => onAnswer({ interruptId: asked.id, status: "cancelled" })}>
        Decline
      </button>
    </form>
  );
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function indented(text: string): string {
  const value = parsed(text);
  return value === undefined ? text : JSON.stringify(value, null, 2);
}
