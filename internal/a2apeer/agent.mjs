// An agent of the official SDK, for tests: node agent.mjs NODE_MODULES 1|03. It prints its address, and ends with its input.
// What it does is the first word of a message.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, sdk] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(join(modules, name)).href);
const v1 = sdk === '1';
const dir = v1 ? 'a2a-sdk-1' : 'a2a-sdk-03';
const { DefaultRequestHandler, InMemoryTaskStore, AgentEvent } = await load(`${dir}/dist/server/index.js`);
const { agentCardHandler, jsonRpcHandler, UserBuilder } = await load(`${dir}/dist/server/express/index.js`);
const { Role, TaskState } = await load(`${dir}/dist/index.js`);
const express = createRequire(join(modules, 'x.js'))('express');

const heard = []; // ids of messages, and the traceparent of their requests
const running = new Map();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// The two SDKs have two sets of types; these make each.
const part = {
  text: (s) => (v1 ? { content: { $case: 'text', value: s }, metadata: undefined, filename: '', mediaType: '' } : { kind: 'text', text: s }),
  data: (d) => (v1 ? { content: { $case: 'data', value: d }, metadata: undefined, filename: '', mediaType: '' } : { kind: 'data', data: d }),
  raw: (b, name, mime) =>
    v1
      ? { content: { $case: 'raw', value: Buffer.from(b) }, metadata: undefined, filename: name, mediaType: mime }
      : { kind: 'file', file: { bytes: Buffer.from(b).toString('base64'), name, mimeType: mime } },
};
const state = (s) => (v1 ? TaskState['TASK_STATE_' + s.toUpperCase().replace('-', '_')] : s);
const message = (ctx, ...parts) => ({
  ...(v1 ? { role: Role.ROLE_AGENT, metadata: undefined, extensions: [], referenceTaskIds: [] } : { kind: 'message', role: 'agent' }),
  messageId: crypto.randomUUID(), contextId: ctx.contextId, taskId: ctx.taskId, parts,
});
const status = (ctx, s, words) => ({ state: state(s), timestamp: new Date().toISOString(), message: words ? message(ctx, part.text(words)) : undefined });
const textOf = (m) => m.parts.map((p) => (v1 ? p.content?.value : p.text)).join('');

class Executor {
  async execute(ctx, bus) {
    const { taskId, contextId, task } = ctx;
    const text = textOf(ctx.userMessage);
    heard.push(ctx.userMessage.messageId);
    const say = (m) => bus.publish(v1 ? AgentEvent.message(m) : m);
    const update = (s, words, final = false) => {
      const e = { taskId, contextId, status: status(ctx, s, words), metadata: undefined };
      bus.publish(v1 ? AgentEvent.statusUpdate(e) : { kind: 'status-update', final, ...e });
    };
    const artifact = (id, name, parts, append = false, lastChunk = false) => {
      const a = { artifactId: id, name, parts, ...(v1 ? { description: '', metadata: undefined, extensions: [] } : {}) };
      const e = { taskId, contextId, artifact: a, append, lastChunk, metadata: undefined };
      bus.publish(v1 ? AgentEvent.artifactUpdate(e) : { kind: 'artifact-update', ...e });
    };
    if (text.startsWith('echo')) {
      say(message(ctx, part.text(text.slice(5))));
      return bus.finished();
    }
    if (text === 'log') {
      say(message(ctx, part.text(JSON.stringify(heard))));
      return bus.finished();
    }
    if (!task) {
      const t = { id: taskId, contextId, status: status(ctx, 'submitted'), history: [ctx.userMessage], artifacts: [], metadata: undefined };
      bus.publish(v1 ? AgentEvent.task(t) : { kind: 'task', ...t });
    } else if (v1) bus.publish(AgentEvent.task(task)); // a stream of 1.0 begins with the task
    update('working', 'thinking');
    if (task) {
      artifact('greeting', 'greeting', [part.text('Hello ' + text)], false, true);
      update('completed', undefined, true);
    } else if (text === 'story' || text === 'slow') {
      artifact('s', 'story', [part.text('Once ')]);
      if (text === 'slow') await pause(1500);
      artifact('s', 'story', [part.text('upon ')], true);
      artifact('s', 'story', [part.text('a time')], true, true);
      update('completed', undefined, true);
    } else if (text === 'files') {
      artifact('d', 'table', [part.data({ rows: [1, 2, 3] })], false, true);
      artifact('f', 'picture', [part.raw([0xff, 0xd8, 0], 'p.jpg', 'image/jpeg')], false, true);
      update('completed', 'two files', true);
    } else if (text === 'ask') {
      update('input-required', 'What is your name?', true);
    } else if (text === 'wait') {
      await new Promise((done) => running.set(taskId, () => { update('canceled', undefined, true); done(); }));
    } else {
      update({ fail: 'failed', reject: 'rejected', auth: 'auth-required' }[text] ?? 'completed', 'because of ' + text, true);
    }
    bus.finished();
  }
  cancelTask = async (taskId, bus) => {
    running.get(taskId)?.();
    running.delete(taskId);
  };
}

const app = express();
const server = app.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const card = {
    name: 'foreign', description: 'An agent of the SDK.', version: '1.0.0', capabilities: { streaming: true, pushNotifications: true, extensions: [] },
    defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{ id: 'chat', name: 'Chat', description: 'Chats.', tags: ['chat'], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
    ...(v1
      ? { supportedInterfaces: [{ url: url + '/rpc', protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' }], securitySchemes: {}, securityRequirements: [], signatures: [] }
      : { url: url + '/rpc', protocolVersion: '0.3.0', preferredTransport: 'JSONRPC' }),
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
  let trace = '';
  app.get('/trace', (_, res) => res.send(trace));
  app.use((req, _, next) => { trace = req.headers.traceparent ?? trace; next(); });
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  console.log(url);
});
process.stdin.on('end', () => process.exit(0)).resume();
