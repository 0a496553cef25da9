import { useAgent, useCopilotKit, useFrontendTool } from "@copilotkit/react-core/v2";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { z } from "zod";
import { InterruptCard, type Answer, type OpenInterrupt } from "./InterruptCard";
import { Messages, type Role } from "./Messages";
import { Todos } from "./Todos";

const AGENT = "demo";

interface Props {
  thread: string;
  onSettled(): void;
  problem: string | null;
  onProblem(message: string | null): void;
}

/** One thread: what was said on it, what is asked, and a place to answer. */
export function Chat({ thread, onSettled, problem, onProblem }: Props) {
  const { agent, isReady } = useAgent({ agentId: AGENT });
  const { copilotkit } = useCopilotKit();
  const [roles, setRoles] = useState<Record<string, Role>>({});
  const [interrupts, setInterrupts] = useState<readonly OpenInterrupt[]>([]);
  const [words, setWords] = useState("");

  useFrontendTool({
    name: "change_colour",
    description: "Change the accent colour of the page.",
    parameters: z.object({ colour: z.string().describe("A CSS colour") }),
    handler: async ({ colour }) => {
      if (!CSS.supports("color", colour)) throw new Error(`${colour} is no colour`);
      document.documentElement.style.setProperty("--accent", colour);
      return `The page is now ${colour}.`;
    },
  });

  useEffect(() => {
    const watching = agent.subscribe({
      onCustomEvent: ({ event }) => {
        if (event.name !== "agui-bridge:round") return;
        const told = event.value as { messages: { id: string; role: Role }[] };
        setRoles((known) => ({ ...known, ...Object.fromEntries(told.messages.map(({ id, role }) => [id, role])) }));
      },
      onRunErrorEvent: ({ event }) => onProblem(event.message),
      onRunFailed: ({ error }) => onProblem(error.message),
      onRunFinalized: () => {
        setInterrupts([...agent.pendingInterrupts]);
        onSettled();
      },
    });
    return () => watching.unsubscribe();
  }, [agent, onProblem, onSettled]);

  useEffect(() => {
    if (!isReady) return;
    onProblem(null);
    agent.threadId = thread;
    agent.setMessages([]);
    agent.setState({});
    copilotkit.connectAgent({ agent }).catch((error: Error) => onProblem(error.message));
    return () => void agent.detachActiveRun();
  }, [agent, copilotkit, isReady, onProblem, thread]);

  const flow = useRef<HTMLDivElement>(null);
  const follows = useRef(true); // until the reader scrolls back
  useLayoutEffect(() => {
    if (flow.current && follows.current) flow.current.scrollTop = flow.current.scrollHeight;
  });

  const run = (resume?: Answer[]) => {
    onProblem(null);
    copilotkit.runAgent({ agent, resume }).catch((error: Error) => onProblem(error.message));
  };
  const say = () => {
    if (!words.trim() || !isReady) return;
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: words });
    setWords("");
    run();
  };

  return (
    <main className="chat">
      <div
        ref={flow}
        className="flow"
        role="log"
        aria-label="Conversation"
        aria-busy={agent.isRunning}
        onScroll={({ currentTarget: at }) => {
          follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < 40;
        }}
      >
        <Messages messages={agent.messages} roles={roles} />
        {!agent.isRunning && interrupts.length > 0 && (
          <InterruptCard
            key={interrupts.map(({ id }) => id).join()}
            interrupts={interrupts}
            messages={agent.messages}
            onAnswer={(answers) => {
              setInterrupts([]);
              run(answers);
            }}
          />
        )}
        {problem && (
          <p className="problem" role="alert">
            {problem}
          </p>
        )}
      </div>
      <Todos state={agent.state as unknown} onChange={(state) => agent.setState(state)} />
      <form
        className="say"
        onSubmit={(event) => {
          event.preventDefault();
          say();
        }}
      >
        <textarea
          aria-label="Message"
          rows={2}
          value={words}
          placeholder="What is the weather in Oslo?"
          onChange={(event) => setWords(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            say();
          }}
        />
        {agent.isRunning ? (
          <button type="button" onClick={() => copilotkit.stopAgent({ agent })}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={!words.trim() || !isReady || interrupts.length > 0}>
            Send
          </button>
        )}
      </form>
    </main>
  );
}
