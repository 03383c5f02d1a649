// Talks to a server as OpenAI's own client does, and prints what it gets as JSON, a line each.
import { createRequire } from "node:module";
const require = createRequire(process.env.PAWL_NPM + "/");
const { OpenAI } = require("openai");

const [url, token] = process.argv.slice(2);
const print = (name, value) => console.log(JSON.stringify({ name, value }));
const client = new OpenAI({ baseURL: url + "/v1", apiKey: token, maxRetries: 0 });

print("models", (await client.models.list()).data.map((m) => m.id));
print("model", (await client.models.retrieve("pawl")).id);

const messages = [
  { role: "system", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "Look." }, { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw==" } }] },
];
const whole = await client.chat.completions.create({ model: "pawl", messages, temperature: 0.2, user: "u1" });
print("whole", { text: whole.choices[0].message.content, finish: whole.choices[0].finish_reason, usage: whole.usage });

const stream = await client.chat.completions.create({ model: "pawl", messages, stream: true, stream_options: { include_usage: true } });
let text = "", reasoning = "", usage = null, finish = "";
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta.content ?? "";
  reasoning += chunk.choices[0]?.delta.reasoning_content ?? "";
  finish = chunk.choices[0]?.finish_reason ?? finish;
  usage = chunk.usage ?? usage;
}
print("streamed", { text, reasoning, finish, usage });

// The client puts the chunks together itself.
const runner = client.chat.completions.stream({ model: "pawl", messages });
print("runner", { text: (await runner.finalChatCompletion()).choices[0].message.content });

for (const body of [{ model: "gpt-7", messages }, { model: "pawl", messages, n: 2 }, { model: "pawl", messages: [] }]) {
  try {
    await client.chat.completions.create(body);
    print("error", null);
  } catch (e) {
    print("error", { kind: e.constructor.name, status: e.status, code: e.code, param: e.param, type: e.type });
  }
}
try {
  await new OpenAI({ baseURL: url + "/v1", apiKey: "wrong", maxRetries: 0 }).models.list();
  print("locked", null);
} catch (e) {
  print("locked", e.constructor.name);
}

// A person who presses stop.
const controller = new AbortController();
const stopped = await client.chat.completions.create({ model: "pawl", messages: [{ role: "user", content: "Wait." }], stream: true }, { signal: controller.signal, headers: { "X-Pawl-Session": "stopped" } });
let got = "";
try {
  for await (const chunk of stopped) {
    got += chunk.choices[0]?.delta.content ?? "";
    if (got.includes("waiting")) controller.abort();
  }
} catch (e) {
  got += " " + e.constructor.name;
}
print("stopped", got);
