import { useState } from "react";
import { deleteSession, renameSession, type Session } from "./sessions";

interface Props {
  sessions: Session[];
  open: string;
  onOpen(id: string): void;
  onNew(): void;
  onChanged(): void;
  onProblem(message: string): void;
}

export function SessionList({ sessions, open, onOpen, onNew, onChanged, onProblem }: Props) {
  const [renaming, setRenaming] = useState<string | null>(null);
  const attempt = (work: Promise<void>) => work.then(onChanged, (error: Error) => onProblem(error.message));

  return (
    <nav className="sessions" aria-label="Sessions">
      <h1>agui-bridge</h1>
      <button type="button" onClick={onNew}>
        New session
      </button>
      <ul>
        {sessions.map(({ session_id: id, title }) => (
          <li key={id} aria-current={id === open ? "page" : undefined}>
            {renaming === id ? (
              <form
                onSubmit={(event) => {
                  event.preventDefault();
                  setRenaming(null);
                  void attempt(renameSession(id, String(new FormData(event.currentTarget).get("title"))));
                }}
              >
                <input name="title" aria-label="Title" defaultValue={title ?? ""} autoFocus required />
                <button type="submit">Save</button>
              </form>
            ) : (
              <>
                <button type="button" className="title" onClick={() => onOpen(id)}>
                  {title || "Untitled"}
                </button>
                <button type="button" className="quiet" aria-label={`Rename ${title || "Untitled"}`} onClick={() => setRenaming(id)}>
                  Rename
                </button>
                <button
                  type="button"
                  className="quiet"
                  aria-label={`Delete ${title || "Untitled"}`}
                  onClick={() => {
                    void attempt(deleteSession(id));
                    if (id === open) onNew();
                  }}
                >
                  Delete
                </button>
              </>
            )}
          </li>
        ))}
      </ul>
    </nav>
  );
}
