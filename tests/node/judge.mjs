// Holds what the server sends against the official AG-UI client.
//
// One JSON command per line on stdin, one JSON answer per line on stdout, matched by `id`; commands may overlap.
//   {"id", "op": "replay", "body" | "bodyBase64", "contentType"?, "cut"?, "input": {threadId, runId, messages, state, …}}
//       serves the very bytes over a loopback connection to a fresh HttpAgent; `cut` breaks the connection after them.
//   {"id", "op": "run", "url", "threadId", "runId", "messages", "state", "tools", "context", "forwardedProps", "resume",
//    "headers"?, "accept"?, "abortAfter"?, "agent"?, "addMessages"?}
//       runs against a live server. Commands that name the same `agent` share one HttpAgent, so its messages, state and
//       pending interrupts carry over from run to run; `messages` and `state` then replace what it holds. With `anew` a
//       new one takes that name.
//   {"id", "op": "decode", "bodyBase64"}
//       takes a protobuf body apart with @ag-ui/proto; answer: {"id", "decoded": [event, …]}.
//   {"id", "op": "compact", "events", "client"?}
//       makes of a run's events those that CopilotKit's runner keeps of it; answer: {"id", "compacted": [event, …]}.
// `client` in "replay" (in its input) and "run" names an older client: "0.0.57", "0.0.59".
// Answer: {"id", "ok", "error", "status", "payload", "events", "warnings", "messages", "state", "pendingInterrupts",
//          "result"}; `ok` tells that runAgent's promise resolved, which it also does for a RUN_ERROR.
// An answer with `fault` means that the command itself could not be carried out.

import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { format } from "node:util";

import { compactEvents, HttpAgent } from "@ag-ui/client";
import { decode } from "@ag-ui/proto";
import { compactEvents as compactEvents57, HttpAgent as HttpAgent57 } from "ag-ui-client-0.0.57";
import { compactEvents as compactEvents59, HttpAgent as HttpAgent59 } from "ag-ui-client-0.0.59";

const clients = { "1.0.0": HttpAgent, "0.0.57": HttpAgent57, "0.0.59": HttpAgent59 };
const compactions = { "1.0.0": compactEvents, "0.0.57": compactEvents57, "0.0.59": compactEvents59 };

const lines = new AsyncLocalStorage();

// A warning belongs to the command in whose asynchronous context it was written; stdout belongs to the answers alone.
for (const level of ["warn", "error"]) {
  console[level] = (...said) => {
    const text = format(...said.map(readable)).replace(/\s+/g, " ").trim();
    const own = lines.getStore();
    if (own) own.push(text);
    else process.stderr.write(`${level}: ${text}\n`);
  };
}
for (const level of ["log", "info", "debug", "trace"]) {
  console[level] = (...said) => process.stderr.write(`${level}: ${format(...said)}\n`);
}
// The client rejects promises that nobody awaits when a stream breaks off; the awaited one is what a page sees.
process.on("unhandledRejection", (reason) => process.stderr.write(`unhandled: ${format(reason)}\n`));

const bodies = new Map();
const agents = new Map();

const replays = createServer((request, response) => {
  const { bytes, contentType, cut } = bodies.get(request.url);
  request.resume();
  request.on("end", () => {
    response.writeHead(200, { "content-type": contentType, "cache-control": "no-cache" });
    if (cut) response.write(bytes, () => setImmediate(() => response.destroy()));
    else response.end(bytes);
  });
});

function agentFor(command, url) {
  const known = command.agent === undefined || command.anew ? undefined : agents.get(command.agent);
  const agent = known ?? new clients[command.client ?? "1.0.0"]({ url });
  if (command.agent !== undefined) agents.set(command.agent, agent);
  agent.url = url;
  agent.headers = command.headers ?? {};
  if (command.threadId !== undefined) agent.threadId = command.threadId;
  if (command.messages !== undefined) agent.setMessages(command.messages);
  if (command.state !== undefined) agent.setState(command.state);
  if (command.addMessages !== undefined) agent.addMessages(command.addMessages);
  agent.fetch = (target, init) =>
    fetch(target, command.accept ? { ...init, headers: { ...init.headers, Accept: command.accept } } : init);
  return agent;
}

// The client reports a schema failure as the validator's JSON; a path and a sentence are what a reader needs.
function readable(said) {
  if (!(said instanceof Error)) return said;
  const found = Array.isArray(said.issues) ? said.issues : null;
  return found ? found.map((one) => `/${one.path.join("/")}: ${one.message}`).join("; ") : said.message;
}

// An aborted run carries its DOMException as `rawEvent`, and an error has no JSON of its own.
function plainErrors(_key, value) {
  return value instanceof Error ? { name: value.name, message: value.message } : value;
}

async function judge(command, url) {
  const warnings = [];
  const events = [];
  return await lines.run(warnings, async () => {
    const agent = agentFor(command, url);
    const { runId, tools, context, forwardedProps, resume, abortAfter } = command;
    const watch = {
      onEvent({ event }) {
        events.push(JSON.parse(JSON.stringify(event, plainErrors)));
        if (events.length === abortAfter) agent.abortRun();
      },
    };
    const verdict = { ok: true, error: null, status: null, payload: null, result: null };
    try {
      const { result } = await agent.runAgent({ runId, tools, context, forwardedProps, resume }, watch);
      verdict.result = result ?? null;
    } catch (error) {
      Object.assign(verdict, { ok: false, error: String(readable(error)) });
      verdict.status = error?.status ?? null;
      verdict.payload = error?.payload ?? null;
    }
    const { messages, state, pendingInterrupts } = agent;
    return { ...verdict, events, warnings, messages, state, pendingInterrupts };
  });
}

async function replay(command, origin) {
  const path = `/${command.id}`;
  const { bodyBase64, body, contentType = "text/event-stream", cut = false, input = {} } = command;
  const bytes = bodyBase64 === undefined ? Buffer.from(body, "utf8") : Buffer.from(bodyBase64, "base64");
  bodies.set(path, { bytes, contentType, cut });
  try {
    return await judge(input, origin + path);
  } finally {
    bodies.delete(path);
  }
}

function decodeAll(bytes) {
  const events = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at);
    if (end > bytes.length) throw new Error("the body ends within a frame");
    events.push(decode(bytes.subarray(at + 4, end)));
    at = end;
  }
  return events;
}

async function answer(line, origin) {
  let command = {};
  let said;
  try {
    command = JSON.parse(line);
    if (command.op === "replay") said = await replay(command, origin);
    else if (command.op === "run") said = await judge(command, command.url);
    else if (command.op === "decode") said = { decoded: decodeAll(Buffer.from(command.bodyBase64, "base64")) };
    else if (command.op === "compact") said = { compacted: compactions[command.client ?? "1.0.0"](command.events) };
    else said = { fault: `unknown op ${JSON.stringify(command.op)}` };
  } catch (error) {
    said = { fault: format(error) };
  }
  process.stdout.write(`${JSON.stringify({ id: command.id ?? null, ...said })}\n`);
}

replays.listen(0, "127.0.0.1");
await once(replays, "listening");
const origin = `http://127.0.0.1:${replays.address().port}`;
const pending = new Set();
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (line.trim() === "") continue;
  const work = answer(line, origin).finally(() => pending.delete(work));
  pending.add(work);
}
await Promise.all(pending);
process.exit(0);
