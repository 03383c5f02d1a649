// Runs an agent as AG-UI's own client does, and prints what it gets as JSON, a line each. Each event is held to the protocol's schemas; the client itself holds their order to its rules.
import { createRequire } from "node:module";
const require = createRequire(process.env.PAWL_NPM + "/");
const { HttpAgent } = require("@ag-ui/client");
const { EventSchema } = require("@ag-ui/core/schemas");

const [url, token] = process.argv.slice(2);
const print = (name, value) => console.log(JSON.stringify({ name, value }));
const warnings = [];
console.warn = (...all) => warnings.push(all.join(" "));

let kinds = [];
const raw = [];
const fetching = async (u, init) => {
  const res = await fetch(u, init);
  raw.push(res.clone().text());
  return res;
};
const agent = new HttpAgent({ url: url + "/ag-ui", threadId: "thread 1", headers: { Authorization: "Bearer " + token }, fetch: fetching, initialState: { count: 1 } });
const run = async (messages, parameters) => {
  kinds = [];
  for (const m of messages) agent.addMessage(m);
  try {
    await agent.runAgent(parameters, { onEvent: ({ event }) => { kinds.push(event.type); } });
  } catch (e) {
    return { error: e.message };
  }
  return { kinds, pending: agent.pendingInterrupts, messages: agent.messages.map(({ role, content, toolCalls }) => ({ role, content, calls: toolCalls?.map((c) => c.function.name) })), state: agent.state };
};

print("run", await run([{ id: "u1", role: "user", content: "Look." }], { runId: "r1", context: [{ description: "The page", value: "home" }] }));
const asked = await run([{ id: "u2", role: "user", content: [{ type: "text", text: "Write." }, { type: "image", source: { type: "data", value: "iVBORw==", mimeType: "image/png" } }] }], { runId: "r2" });
print("asked", asked);
print("unanswered", await run([], { runId: "r3" }));
print("answered", await run([], { runId: "r4", resume: asked.pending.map((i) => ({ interruptId: i.id, status: "resolved", payload: { approved: true } })) }));
print("again", await run([{ id: "u3", role: "user", content: "Try." }], { runId: "r5" }));
print("failed", await run([{ id: "u4", role: "user", content: "Fail." }], { runId: "r6" }));

const wrong = [];
let events = 0;
for (const body of await Promise.all(raw)) {
  for (const frame of body.split("\n\n")) {
    if (!frame.startsWith("data: ")) continue;
    events++;
    const event = JSON.parse(frame.slice(6));
    const checked = EventSchema.safeParse(event);
    if (!checked.success) wrong.push({ event, error: checked.error.issues });
  }
}
print("schemas", { events, wrong, warnings });
