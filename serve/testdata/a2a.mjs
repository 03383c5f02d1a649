// A client of A2A that others wrote, against our server: VERSION is 1.0 or 0.3. What it sees is checked here; the Go test that starts it looks at what the server did.
import assert from 'node:assert/strict';
import http from 'node:http';
import { createRequire } from 'node:module';

const { VERSION, PLAIN, ASKS, WAITS, CONTROL, TOKEN, PAWL_NPM } = process.env;
const require = createRequire(PAWL_NPM + '/node_modules/');
const one = VERSION === '1.0';
const sdk = require(one ? 'a2a-sdk-1/client' : 'a2a-sdk-03/client');

const authed = sdk.createAuthenticatingFetchWithRetry(fetch, {
  headers: async () => ({ Authorization: `Bearer ${TOKEN}` }),
  shouldRetryWithHeaders: async () => undefined,
});
const open = (url, fetchImpl = authed) =>
  new sdk.ClientFactory({
    transports: [new sdk.JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new sdk.DefaultAgentCardResolver({ fetchImpl: fetch }),
  }).createFromUrl(url);

// What differs between the two.
const state = one
  ? (n) => ['unspecified', 'submitted', 'working', 'completed', 'failed', 'canceled', 'input-required', 'rejected', 'auth-required'][n]
  : (s) => s;
const textPart = (text) => (one ? { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' } : { kind: 'text', text });
const dataPart = (data) => (one ? { content: { $case: 'data', value: data }, metadata: undefined, filename: '', mediaType: '' } : { kind: 'data', data });
const filePart = (type, name, base64) =>
  one
    ? { content: { $case: 'raw', value: Buffer.from(base64, 'base64') }, metadata: undefined, filename: name, mediaType: type }
    : { kind: 'file', file: { mimeType: type, name, bytes: base64 } };
const textOf = (parts) => parts.map((p) => (one ? (p.content?.$case === 'text' ? p.content.value : '') : p.kind === 'text' ? p.text : '')).join('');
const dataOf = (parts) => parts.map((p) => (one ? (p.content?.$case === 'data' ? p.content.value : null) : p.kind === 'data' ? p.data : null)).filter(Boolean);
let n = 0;
const message = (parts, extra = {}) => ({
  message: {
    messageId: `${VERSION}-m${++n}`, parts, role: one ? 1 : 'user',
    ...(one ? { contextId: '', taskId: '', metadata: undefined, extensions: [], referenceTaskIds: [] } : { kind: 'message' }),
    ...extra,
  },
  ...(one ? { tenant: '', metadata: undefined } : {}),
});
const say = (text, extra) => message([textPart(text)], extra);
const configured = (m, c) => ({ ...m, configuration: one ? { acceptedOutputModes: [], ...c } : c });
const atOnce = (m, more = {}) => configured(m, one ? { returnImmediately: true, ...more } : { blocking: false, ...more });
const id = (task) => (one ? { tenant: '', id: task, historyLength: undefined } : { id: task });
const event = (e) => {
  if (!one) return { [{ task: 'task', message: 'message', 'status-update': 'status', 'artifact-update': 'artifact' }[e.kind]]: e };
  return { [{ task: 'task', message: 'message', statusUpdate: 'status', artifactUpdate: 'artifact' }[e.payload.$case]]: e.payload.value };
};
// told keeps what a client shows: the state, and the artifacts as they come.
const told = () => {
  const seen = { states: [], artifacts: {}, pieces: 0, task: undefined };
  seen.take = (raw) => {
    const e = event(raw);
    if (e.task) {
      seen.task = e.task;
      for (const a of e.task.artifacts ?? []) seen.artifacts[a.artifactId] = textOf(a.parts);
    }
    const st = e.task?.status ?? e.status?.status;
    if (st) (seen.states.push(state(st.state)), (seen.status = st));
    if (e.artifact) {
      seen.pieces++;
      const a = e.artifact.artifact;
      seen.artifacts[a.artifactId] = (e.artifact.append ? seen.artifacts[a.artifactId] : '') + textOf(a.parts);
    }
    return e;
  };
  return seen;
};
const whole = async (stream) => {
  const seen = told();
  for await (const e of stream) seen.take(e);
  return seen;
};
const rejects = async (promise, name) => {
  try {
    await promise;
  } catch (e) {
    const cause = e.cause ?? e;
    assert.match(`${cause.constructor.name} ${cause.name} ${cause.message} ${e.message}`, name);
    return;
  }
  assert.fail(`nothing was thrown, want ${name}`);
};
const notFound = /TaskNotFound/;

// Who has no token is told what is wrong, in the protocol's own form.
const card = await (await fetch(PLAIN + '/.well-known/agent-card.json')).json();
assert.equal(card.name, 'pawl-test');
assert.equal(card.skills[0].id, 'sums');
await rejects((await open(PLAIN, fetch)).sendMessage(say('hello')), /token is needed/);

const plain = await open(PLAIN);
const asks = await open(ASKS);
const waits = await open(WAITS);

// A message, a task.
const sum = say('2 + 3?');
const done = await plain.sendMessage(sum);
assert.equal(state(done.status.state), 'completed');
assert.equal(textOf(done.artifacts[0].parts), 'It is five.');
assert.equal((await plain.sendMessage(sum)).id, done.id, 'the same message again is the same task');

// A stream, in the same context.
const streamed = await whole(plain.sendMessageStream(say('And six?', { contextId: done.contextId })));
assert.deepEqual([streamed.states[0], streamed.states.at(-1)], ['working', 'completed']);
assert.equal(streamed.artifacts.answer, 'Six it is, I think.');
assert.ok(streamed.pieces > 2, `${streamed.pieces} pieces`);
assert.equal(streamed.task.contextId, done.contextId);
const got = await plain.getTask(id(streamed.task.id));
assert.equal(textOf(got.artifacts[0].parts), 'Six it is, I think.');
assert.equal(got.history[0].messageId, `${VERSION}-m${n}`);

// A file comes in.
const image = await plain.sendMessage(message([textPart('What is it?'), filePart('image/png', 'dot.png', 'iVBORw0KGgo=')]));
assert.equal(state(image.status.state), 'completed');

// What can't be done is an error of the protocol.
await rejects(plain.getTask(id('nothing')), notFound);
await rejects(plain.cancelTask(id(done.id)), /TaskNotCancelable/);
await rejects(plain.sendMessage(say('More?', { taskId: done.id })), /UnsupportedOperation/);
await rejects(plain.sendMessage(message([filePart('video/mp4', 'a.mp4', 'AAAA')])), /ContentTypeNotSupported/);
await rejects(whole(plain.resubscribeTask(id('nothing'))), notFound);
await rejects(whole(plain.sendMessageStream(say('More?', { taskId: done.id }))), /UnsupportedOperation/);

// It asks, and is answered: by data, by a word, by a stream.
const first = await asks.sendMessage(say('Add them.'));
assert.equal(state(first.status.state), 'input-required');
const [q] = dataOf(first.status.message.parts);
assert.deepEqual([q.type, q.call, q.input], ['approval', 'add', { A: 2, B: 3 }]);
const second = await asks.sendMessage(message([dataPart({ id: q.id, approved: true, input: { A: 20, B: 3 } })], { taskId: first.id, contextId: first.contextId }));
assert.equal(state(second.status.state), 'input-required');
assert.deepEqual(dataOf(second.status.message.parts)[0].choices, ['red', 'blue']);
const third = await whole(asks.sendMessageStream(say('blue', { taskId: first.id, contextId: first.contextId })));
assert.equal(third.states.at(-1), 'completed');
assert.equal(third.artifacts.answer, 'Blue, and 23.');
const refused = await whole(asks.sendMessageStream(say('Add them again.')));
assert.equal(refused.states.at(-1), 'input-required');
const ended = await asks.cancelTask(id(refused.task.id));
assert.equal(state(ended.status.state), 'canceled');

// A stream that is cut off, and taken up again.
const cut = told();
for await (const e of waits.sendMessageStream(say('Wait.'))) {
  cut.take(e);
  if (cut.pieces > 0) break;
}
const again = told();
let released = false;
for await (const e of waits.resubscribeTask(id(cut.task.id))) {
  again.take(e);
  if (!released) ((released = true), await fetch(CONTROL + '/go'));
}
assert.equal(again.states.at(-1), 'completed');
assert.equal(again.artifacts.answer, 'It waited.');

// Notifications.
const notes = [];
let finished;
const over = new Promise((resolve) => (finished = resolve));
const receiver = http.createServer((req, res) => {
  let body = '';
  req.on('data', (b) => (body += b));
  req.on('end', () => {
    notes.push({ headers: req.headers, body: JSON.parse(body) });
    res.writeHead(204).end();
    if (/completed/i.test(body)) finished();
  });
});
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${receiver.address().port}/notify`;
await rejects(plain.sendMessage(atOnce(say('x'), one ? { taskPushNotificationConfig: { url: 'https://10.0.0.1/' } } : { pushNotificationConfig: { url: 'https://10.0.0.1/' } })), /public network/);
const task = await waits.sendMessage(atOnce(say('Wait.')));
assert.equal(state(task.status.state), 'working');
if (one) {
  const set = await waits.createTaskPushNotificationConfig({ tenant: '', id: 'mine', taskId: task.id, url, token: 'tok', authentication: { scheme: 'Bearer', credentials: 'cred' } });
  assert.equal(set.id, 'mine');
  assert.equal((await waits.getTaskPushNotificationConfig({ tenant: '', taskId: task.id, id: 'mine' })).url, url);
  assert.equal((await waits.listTaskPushNotificationConfig({ tenant: '', taskId: task.id, pageSize: 0, pageToken: '' })).configs.length, 1);
  await waits.createTaskPushNotificationConfig({ tenant: '', id: 'other', taskId: task.id, url: url + '/other', token: '', authentication: undefined });
  await waits.deleteTaskPushNotificationConfig({ tenant: '', taskId: task.id, id: 'other' });
} else {
  const set = await waits.setTaskPushNotificationConfig({ taskId: task.id, pushNotificationConfig: { id: 'mine', url, token: 'tok', authentication: { schemes: ['Bearer'], credentials: 'cred' } } });
  assert.equal(set.pushNotificationConfig.id, 'mine');
  assert.equal((await waits.getTaskPushNotificationConfig({ id: task.id, pushNotificationConfigId: 'mine' })).pushNotificationConfig.url, url);
  assert.equal((await waits.listTaskPushNotificationConfig({ id: task.id })).length, 1);
  await waits.setTaskPushNotificationConfig({ taskId: task.id, pushNotificationConfig: { id: 'other', url: url + '/other' } });
  await waits.deleteTaskPushNotificationConfig({ id: task.id, pushNotificationConfigId: 'other' });
}
await fetch(CONTROL + '/go');
await over;
receiver.close();
const mine = notes.filter((x) => x.headers['x-a2a-notification-token'] === 'tok');
assert.ok(mine.every((x) => x.headers.authorization === 'Bearer cred'));
const last = mine.at(-1).body;
if (one) {
  assert.equal(last.statusUpdate.status.state, 'TASK_STATE_COMPLETED');
  assert.ok(mine.some((x) => x.body.artifactUpdate?.artifact.parts[0].text === 'It waited.'));
} else {
  assert.deepEqual([last.kind, last.status.state, last.artifacts[0].parts[0].text], ['task', 'completed', 'It waited.']);
}

// A list, page by page.
if (one) {
  const ids = [];
  let token = '';
  do {
    const page = await plain.listTasks({ tenant: '', contextId: '', status: 0, pageSize: 1, pageToken: token, historyLength: undefined, statusTimestampAfter: undefined, includeArtifacts: true });
    assert.equal(page.totalSize, 3);
    ids.push(...page.tasks.map((t) => t.id));
    token = page.nextPageToken;
  } while (token);
  assert.deepEqual(ids, [image.id, streamed.task.id, done.id]);
  const filtered = await plain.listTasks({ tenant: '', contextId: done.contextId, status: 3, pageSize: 50, pageToken: '', historyLength: undefined, statusTimestampAfter: undefined, includeArtifacts: undefined });
  assert.deepEqual(filtered.tasks.map((t) => t.id), [streamed.task.id, done.id]);
}
console.log('ok');
process.exit(0);
