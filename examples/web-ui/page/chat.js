'use strict';
const token = document.getElementById('token');
const prompt = document.getElementById('prompt');
const log = document.getElementById('log');
const session = 'chat-' + Date.now();

// add puts a line into the log. A text is a text there, whatever is in it.
function add(kind, text) {
  const line = document.createElement('p');
  line.className = kind;
  line.textContent = text;
  log.append(line);
  return line;
}

async function call(method, path, body) {
  const answer = await fetch(path, {
    method,
    headers: {'Content-Type': 'application/json', 'Authorization': 'Bearer ' + token.value},
    body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  return answer;
}

let last = ''; // the id of the last event: who was cut off goes on behind it

// events yields what happens in the session, as it does. (An EventSource can't send a token.)
async function* events() {
  const answer = await call('GET', `/v1/sessions/${session}/events?after=${last}`);
  let text = '';
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (text + piece).split('\n');
    text = lines.pop();
    for (const line of lines) {
      if (line.startsWith('id: ')) last = line.slice(4);
      if (line.startsWith('data: ')) yield JSON.parse(line.slice(6));
    }
  }
}

// ask shows what waits for a person. The answer is a request of its own: the page that gives it need not be this one.
function ask(question) {
  const line = add('asks', `${question.call.name} ${question.call.input} `);
  for (const [label, said, approved] of [['Approve', 'approved', true], ['Reject', 'rejected', false]]) {
    const button = document.createElement('button');
    button.textContent = label;
    button.onclick = () => call('POST', `/v1/sessions/${session}/answers`, {id: question.id, approved, by: 'the page'})
      .then(() => line.replaceChildren(question.call.name, ' ', said), (err) => add('wrong', err.message));
    line.append(button, ' ');
  }
}

// follow shows what happens, whoever had it happen.
async function follow() {
  let reply;
  for await (const event of events()) {
    switch (event.kind) {
      case 'model.started': reply = add('reply', ''); break;
      case 'retry': reply.textContent = ''; break; // what was said counts no more
      case 'text.delta': reply.textContent += event.text; break;
      case 'asked': ask(event.data); break;
      case 'run.finished': if (event.data.status !== 'completed') add('wrong', event.data.error || event.data.status); break;
    }
  }
}

let following;
document.getElementById('say').onsubmit = async (e) => {
  e.preventDefault();
  try {
    await call('POST', '/v1/runs', {prompt: prompt.value, session});
    add('you', prompt.value);
    prompt.value = '';
    following ??= follow().catch((err) => { following = undefined; add('wrong', err.message); });
  } catch (err) {
    add('wrong', err.message);
  }
};
