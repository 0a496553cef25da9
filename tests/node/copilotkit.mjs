// CopilotKit's own core, unmodified, as the pages of a server that speaks its runtime protocol.
//
// One JSON command per line on stdin, one JSON answer per line on stdout, matched by `id`; commands may overlap.
//   {"id", "op": "open", "page", "url", "transport": "rest" | "single" | "auto", "headers"?, "tools"?: [{name, result}],
//    "suggest"?: instructions}        connects; answer: what the page knows of the runtime
//   {"id", "op": "say", "page", "agent", "thread", "text"}      one turn, with all that its tools make of it
//   {"id", "op": "begin", … as "say", "until"}                  comes back as soon as the page shows these words
//   {"id", "op": "settle", "page", "agent"}                     waits for the turn that was begun
//   {"id", "op": "stop", "page", "agent"}                       presses Stop
//   {"id", "op": "connect", "page", "agent", "thread"}          what a page does when it is loaded
//   {"id", "op": "answer", "page", "agent", "payload" | "cancel"}  answers what is asked, as `useInterrupt` does
//   {"id", "op": "suggestions", "page", "agent"}                asks for suggestions and waits for them
//   {"id", "op": "threads", "page", "agent", "do", "thread"?, "name"?, "limit"?, "includeArchived"?}
//       `useThreads` is this store and React's wiring; "do" is one of its methods, or "list"
// A turn's answer: {"id", "messages", "state", "interrupts", "errors", "warnings"}; `errors` are those of onError.
// An answer with `fault` means that the command itself could not be carried out.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { format } from "node:util";

// The core connects only in a browser, which it knows by this.
globalThis.window = globalThis;
const {
  CopilotKitCore,
  ɵcreateThreadStore: createThreadStore,
  ɵInterruptState: InterruptState,
} = await import("@copilotkit/core");

for (const level of ["log", "info", "debug", "trace", "warn", "error"]) {
  console[level] = (...said) => process.stderr.write(`${level}: ${format(...said)}\n`);
}
process.on("unhandledRejection", (reason) => process.stderr.write(`unhandled: ${format(reason)}\n`));

const pages = new Map();

function once(subscribe) {
  return new Promise((resolve) => {
    let subscription;
    const done = (value) => {
      subscription?.unsubscribe();
      resolve(value);
    };
    subscription = subscribe(done);
  });
}

async function open({ page: name, url, transport, headers, tools, suggest }) {
  const asked = [];
  const core = new CopilotKitCore({
    runtimeUrl: undefined,
    runtimeTransport: transport,
    headers,
    tools: (tools ?? []).map(({ name: tool, result }) => ({
      name: tool,
      description: "A tool of the page",
      handler: async (args) => {
        asked.push({ tool, args });
        return result;
      },
    })),
    suggestionsConfig: suggest === undefined ? [] : [{ instructions: suggest, available: "always" }],
  });
  const page = { core, asked, errors: [], turns: new Map(), interrupts: new Map(), stores: new Map() };
  pages.set(name, page);
  const settled = once((done) =>
    core.subscribe({
      onRuntimeConnectionStatusChanged: ({ status }) => status === "connected" && done(),
      onError: done,
    }),
  );
  core.subscribe({ onError: ({ error, code }) => page.errors.push({ code, message: String(error?.message ?? error) }) });
  core.setRuntimeUrl(url);
  await settled;
  await new Promise(setImmediate); // every subscriber has heard
  const { runtimeConnectionStatus, runtimeTransport, runtimeVersion, suggestions, threadEndpoints } = core;
  const agents = Object.fromEntries(Object.entries(core.agents).map(([id, agent]) => [id, agent.description]));
  return { status: runtimeConnectionStatus, transport: runtimeTransport, version: runtimeVersion, suggestions,
    threadEndpoints, agents, errors: page.errors };
}

// What is asked stands in the outcome of a run, and is taken back by the next one that begins.
function agentOf(page, id, thread) {
  const agent = page.core.getAgent(id);
  if (thread !== undefined) agent.threadId = thread;
  if (!page.interrupts.has(id)) {
    page.interrupts.set(id, []);
    agent.subscribe({
      onRunInitialized: () => void page.interrupts.set(id, []),
      onRunFinishedEvent: ({ event }) =>
        void page.interrupts.set(id, event.outcome?.type === "interrupt" ? event.outcome.interrupts : []),
    });
  }
  return agent;
}

function shown(page, id) {
  const { messages, state, isRunning } = page.core.getAgent(id);
  const errors = page.errors.splice(0);
  return { messages, state, isRunning, interrupts: page.interrupts.get(id), errors, asked: page.asked.splice(0) };
}

function turn(page, { agent: id, thread, text }) {
  const agent = agentOf(page, id, thread);
  agent.addMessage({ id: randomUUID(), role: "user", content: text });
  return page.core.runAgent({ agent });
}

async function say(page, command) {
  await turn(page, command);
  return shown(page, command.agent);
}

async function begin(page, command) {
  const agent = agentOf(page, command.agent, command.thread);
  const seen = once((done) =>
    agent.subscribe({
      onMessagesChanged: ({ messages }) => JSON.stringify(messages.at(-1) ?? "").includes(command.until) && done(),
    }),
  );
  page.turns.set(command.agent, command.text === undefined ? page.core.connectAgent({ agent }) : turn(page, command));
  await seen;
  return shown(page, command.agent);
}

async function settle(page, { agent: id }) {
  await page.turns.get(id);
  return shown(page, id);
}

async function stop(page, { agent: id }) {
  page.core.stopAgent({ agent: page.core.getAgent(id) });
  return {};
}

async function connect(page, { agent: id, thread }) {
  await page.core.connectAgent({ agent: agentOf(page, id, thread) });
  return shown(page, id);
}

async function answer(page, { agent: id, payload, cancel }) {
  const agent = agentOf(page, id);
  const held = new InterruptState();
  held.setStandard(page.interrupts.get(id));
  let decided;
  for (const { id: interrupt } of page.interrupts.get(id)) {
    decided = cancel ? held.cancel(interrupt) : held.resolve(payload, interrupt);
  }
  if (decided?.kind !== "resume") throw new Error(`nothing to resume: ${JSON.stringify(decided)}`);
  for (const { toolCallId, content } of decided.toolResults) {
    agent.addMessage({ id: randomUUID(), role: "tool", toolCallId, content });
  }
  await page.core.runAgent({ agent, resume: decided.resume });
  return shown(page, id);
}

async function suggestions(page, { agent: id }) {
  const done = once((resolve) => page.core.subscribe({ onSuggestionsFinishedLoading: resolve }));
  page.core.reloadSuggestions(id);
  await done;
  return page.core.getSuggestions(id);
}

function storeOf(page, { agent: id, limit, includeArchived }) {
  const key = JSON.stringify([id, limit, includeArchived]);
  if (!page.stores.has(key)) {
    const store = createThreadStore({ fetch: page.core.ɵruntimeFetch });
    store.start();
    store.setContext({
      runtimeUrl: page.core.runtimeUrl,
      headers: { ...page.core.headers },
      wsUrl: page.core.intelligence?.wsUrl,
      agentId: id,
      includeArchived,
      limit,
    });
    page.stores.set(key, store);
  }
  return page.stores.get(key);
}

function rested(store) {
  const busy = ({ isLoading, isFetchingNextPage, inFlightMutationCount }) =>
    isLoading || isFetchingNextPage || inFlightMutationCount > 0;
  return once((done) => store.select((state) => state).subscribe((state) => busy(state) || setImmediate(done)));
}

async function threads(page, command) {
  const store = storeOf(page, command);
  await rested(store);
  const { do: method, thread, name } = command;
  let refused = null;
  if (method === "list") store.refetchThreads();
  else if (method === "fetchNextPage") store.fetchNextPage();
  else await store[method](thread, ...(name === undefined ? [] : [name])).catch((error) => (refused = error.message));
  await rested(store);
  const { threads: listed, error, nextCursor } = store.getState();
  return { threads: listed, error: error?.message ?? null, hasMore: nextCursor !== null, refused };
}

const operations = { say, begin, settle, stop, connect, answer, suggestions, threads };

async function carryOut(line) {
  let command = {};
  let said;
  try {
    command = JSON.parse(line);
    const operation = operations[command.op];
    if (command.op === "open") said = await open(command);
    else if (operation === undefined) said = { fault: `unknown op ${JSON.stringify(command.op)}` };
    else said = await operation(pages.get(command.page), command);
  } catch (error) {
    said = { fault: format(error) };
  }
  process.stdout.write(`${JSON.stringify({ id: command.id ?? null, ...said })}\n`);
}

const pending = new Set();
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (line.trim() === "") continue;
  const work = carryOut(line).finally(() => pending.delete(work));
  pending.add(work);
}
await Promise.all(pending);
process.exit(0);
