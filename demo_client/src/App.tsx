import { useCallback, useEffect, useState } from "react";
import { Chat } from "./Chat";
import { SessionList } from "./SessionList";
import { listSessions, type Session } from "./sessions";

/** The thread is named in the address, so that a reload or a link comes back to it. */
function threadInAddress(): string {
  const named = new URLSearchParams(location.hash.slice(1)).get("thread");
  return named || `page-${crypto.randomUUID()}`;
}

export function App() {
  const [thread, setThread] = useState(threadInAddress);
  const [sessions, setSessions] = useState<Session[]>([]);
  const [problem, setProblem] = useState<string | null>(null);

  const refresh = useCallback(() => {
    listSessions().then(setSessions, (error: Error) => setProblem(error.message));
  }, []);
  useEffect(refresh, [refresh]);

  useEffect(() => {
    history.replaceState(null, "", `#thread=${encodeURIComponent(thread)}`);
  }, [thread]);
  useEffect(() => {
    const follow = () => setThread(threadInAddress());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);

  return (
    <div className="page">
      <SessionList
        sessions={sessions}
        open={thread}
        onOpen={setThread}
        onNew={() => setThread(`page-${crypto.randomUUID()}`)}
        onChanged={refresh}
        onProblem={setProblem}
      />
      <Chat key={thread} thread={thread} onSettled={refresh} problem={problem} onProblem={setProblem} />
    </div>
  );
}
