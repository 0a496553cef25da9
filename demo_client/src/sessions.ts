/** The sessions of this server, through its native API. */

export interface Session {
  session_id: string;
  title: string | null;
}

/** What a server refuses, in its own words. */
export class Refused extends Error {}

async function asked(path: string, init?: RequestInit): Promise<unknown> {
  const response = await fetch(path, init);
  const text = await response.text();
  if (!response.ok) {
    let message = text;
    try {
      message = (JSON.parse(text) as { message?: string }).message ?? text;
    } catch {
      // not one of ours: shown as it came
    }
    throw new Refused(message || `The server answered ${response.status}.`);
  }
  return text ? JSON.parse(text) : null;
}

const pathOf = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;

export async function listSessions(): Promise<Session[]> {
  const found = (await asked("/api/sessions?limit=100")) as { sessions: Session[] };
  return found.sessions;
}

export async function renameSession(id: string, title: string): Promise<void> {
  const headers = { "content-type": "application/json" };
  await asked(pathOf(id), { method: "PATCH", headers, body: JSON.stringify({ title }) });
}

export async function deleteSession(id: string): Promise<void> {
  await asked(pathOf(id), { method: "DELETE" });
}
