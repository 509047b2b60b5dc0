// Shows the launch's runs and starts new ones. Everything from the server is set as text, never as markup.
const list = document.querySelector('#run-list');
const api = `${list.dataset.base}/api`;
const refreshEveryMs = 1000;

async function call(path, body) {
  const response = await fetch(`${api}/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error([answer.error, ...(answer.details ?? []).map((d) => `${d.path} ${d.message}`)].join('; '));
  return answer;
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const what = {
  CREATED: 'Asking the platform for an operation',
  AWAITING_APPROVAL: 'Waiting for your approval in the platform',
  APPROVED: 'Approved',
  PROCESSING: 'Processing',
  UPLOADING: 'Uploading the output',
  COMPLETED: 'Completed: the output is in the platform',
  REJECTED: 'Rejected: nothing was processed',
  EXPIRED: 'Expired: nobody decided in time, nothing was processed',
  CANCELLED: 'Cancelled',
  FAILED: 'Failed',
};

function facts(run) {
  const lines = [];
  if (run.state === 'AWAITING_APPROVAL' && run.operationExpiresAt) {
    const minutes = Math.max(0, Math.ceil((Date.parse(run.operationExpiresAt) - Date.now()) / 60000));
    lines.push(`${minutes} min left to decide. Operation ${run.operationId}`);
  }
  if (run.progress.note && !run.isFinal) lines.push(run.progress.note);
  if (run.progress.bytes) lines.push(`${(run.progress.bytes.sent / 1e6).toFixed(1)} of ${(run.progress.bytes.total / 1e6).toFixed(1)} MB`);
  if (run.file) lines.push(`File ${run.file.fileId ?? '(the platform did not name it)'}, ${run.file.sizeBytes} bytes, sha256 ${run.output.sha256}`);
  if (run.failure) lines.push(run.failure.message, run.failure.advice);
  return lines;
}

function draw(run) {
  const item = element('li', null);
  const head = element('header', null);
  head.append(element('strong', run.step.title), element('span', what[run.state] ?? run.state));
  item.append(head, ...facts(run).map((line) => element('p', line, { class: run.failure ? 'problem' : 'quiet' })));
  if (!run.isFinal && run.progress.fraction !== null) {
    item.append(element('progress', null, { max: '1', value: String(run.progress.fraction), 'aria-label': 'progress' }));
  }
  const action = run.isFinal ? (run.state === 'COMPLETED' ? null : 'retry') : 'cancel';
  if (action) {
    const button = element('button', action === 'retry' ? 'Try again (a new operation)' : 'Cancel', { class: 'plain' });
    button.addEventListener('click', () => call(`runs/${run.id}/${action}`, {}).then(refresh, (error) => alert(error.message)));
    item.append(button);
  }
  return item;
}

let shown = '';
async function refresh() {
  const { runs } = await call('runs');
  const now = JSON.stringify(runs);
  if (now === shown && runs.every((run) => run.isFinal)) return;
  shown = now;
  const focused = [...list.querySelectorAll('button')].indexOf(document.activeElement);
  list.replaceChildren(...runs.map(draw));
  if (focused >= 0) list.querySelectorAll('button')[focused]?.focus();
  document.querySelector('#no-runs').hidden = runs.length > 0;
}

function parameters(form) {
  const fields = [...form.querySelectorAll('[data-parameter]')];
  return Object.fromEntries(
    fields.map((field) => {
      const { type } = field.dataset;
      if (type === 'boolean') return [field.name, field.checked];
      return [field.name, type === 'string' ? field.value : Number(field.value)];
    }),
  );
}

const choice = document.querySelector('#step');
const forms = [...document.querySelectorAll('form.step')];
const showForm = () => forms.forEach((form) => (form.hidden = form.dataset.step !== choice.value));
choice.addEventListener('change', showForm);
showForm();

const shownCollections = 20;
const shownItems = 10;

/** Newest items of the platform's collections, to choose from; none where the catalog cannot be read. */
async function itemChoices() {
  const { collections } = await call('collections');
  const groups = await Promise.all(
    collections.slice(0, shownCollections).map(async ({ id, title }) => {
      const { items } = await call('items/search', { collections: [id], limit: shownItems });
      const group = element('optgroup', null, { label: title });
      group.append(...items.map((item) => element('option', [item.title, item.datetime?.slice(0, 10)].filter(Boolean).join(', '), { value: JSON.stringify({ type: 'platform', items: [{ collectionId: item.collectionId, itemId: item.itemId }] }) })));
      return group;
    }),
  );
  return groups.filter((group) => group.children.length > 0);
}

const { inputs } = await call('inputs');
const choices = await itemChoices().catch(() => []);
for (const form of forms) {
  const select = form.querySelector('[data-input]');
  const local = inputs.map((name) => element('option', name, { value: JSON.stringify({ type: 'local', path: name }) }));
  select.append(...choices.map((group) => group.cloneNode(true)), element('option', 'A synthetic scene, made by code', { value: '' }), ...local);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const problem = form.querySelector('.problem');
    try {
      await call('runs', {
        stepId: form.dataset.step,
        parameters: parameters(form),
        ...(select.value ? { input: JSON.parse(select.value) } : {}),
      });
      problem.hidden = true;
      await refresh();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
  });
}

await refresh();
setInterval(() => refresh().catch(() => {}), refreshEveryMs);
