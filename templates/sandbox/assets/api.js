// @ts-check
// Sends the examples to this sandbox. The key stays in this tab.
import { all, around, byId, first, messageOf } from './shared/dom.js';

const key = byId('key', HTMLInputElement);
const said = byId('key-said', HTMLElement);
key.value = sessionStorage.getItem('api-key') ?? '';
key.addEventListener('change', () => sessionStorage.setItem('api-key', key.value));
byId('make-key', HTMLElement).addEventListener('click', async () => {
  const response = await fetch('/docs/key', { method: 'POST' }).catch(() => null);
  if (!response) return void (said.textContent = 'The sandbox cannot be reached. Try again in a moment.');
  /** @type {{ id: string, apiKey: string, error: string }} */
  const answer = await response.json();
  if (!response.ok) return void (said.textContent = answer.error);
  key.value = answer.apiKey;
  sessionStorage.setItem('api-key', key.value);
  said.textContent = `A key with all permissions. Revoke it by DELETE /sandbox/keys/${answer.id}`;
});

/**
 * Returns the request of an example's form. `type` is the content type of the body.
 * @param {HTMLFormElement} form
 */
function requestOf(form) {
  const { method = 'GET', type = '', wantsKey } = form.dataset;
  const address = first('[name="address"]', HTMLInputElement, form)?.value ?? '';
  const body = first('[name="body"]', HTMLTextAreaElement, form)?.value ?? null;
  return { method, type, wantsKey: wantsKey === 'true', address, body };
}

document.addEventListener('submit', async (event) => {
  const form = around(event, '.try', HTMLFormElement);
  if (!form) return;
  event.preventDefault();
  const { method, type, wantsKey, address, body } = requestOf(form);
  const hole = /\{[A-Za-z]+\}/.exec(address)?.[0];
  if (hole) return show(form, `Put a value for ${hole} into the address first.`);
  const began = performance.now();
  try {
    const response = await fetch(address, {
      method,
      headers: {
        ...(wantsKey ? { 'x-api-key': key.value } : {}),
        ...(body === null ? {} : { 'content-type': type }),
      },
      ...(body === null ? {} : { body }),
    });
    const media = response.headers.get('content-type') ?? '';
    const text = /json|text|xml/.test(media)
      ? await response.text()
      : `${(await response.blob()).size} bytes of ${media}`;
    const isRefused = response.status === 401 || response.status === 403;
    const hint = isRefused && wantsKey && !key.value ? '. Make a key above first' : '';
    const tookMs = Math.round(performance.now() - began);
    show(form, `${response.status} ${response.statusText}, ${tookMs} ms${hint}`, formatted(text));
  } catch (error) {
    show(form, messageOf(error));
  }
});

/** @param {string} text */
function formatted(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
/**
 * Shows a line, and a text below it.
 * @param {HTMLFormElement} form
 * @param {string} line
 */
function show(form, line, body = '') {
  /** @type {HTMLElement[]} */
  const parts = [Object.assign(document.createElement('strong'), { textContent: line })];
  if (body)
    parts.push(Object.assign(document.createElement('pre'), { textContent: body.slice(0, 20_000), tabIndex: 0 }));
  form.querySelector('output')?.replaceChildren(...parts);
}

document.addEventListener('click', async (event) => {
  const button = around(event, '[data-curl]', HTMLElement);
  const form = button?.closest('form');
  if (!button || !form) return;
  const words = (button.dataset['words'] ??= button.textContent);
  const { method, type, wantsKey, address, body } = requestOf(form);
  const lines = [`curl -X ${method} "${location.origin}${address}"`];
  if (wantsKey) lines.push(`-H "x-api-key: ${key.value || '$API_KEY'}"`);
  if (body !== null) lines.push(`-H "content-type: ${type}"`, `--data '${body.replaceAll("'", "'\\''")}'`);
  else if (type) lines.push('-F "file=@file.tif"  # and the other fields of the form');
  const text = lines.join(' \\\n  ');
  await navigator.clipboard.writeText(text).then(
    () => {
      button.textContent = 'Copied';
      setTimeout(() => (button.textContent = words), 1_500);
    },
    () => show(form, '', text),
  );
});

// The list of calls: found by a word, and a chosen call is open.
const words = byId('words', HTMLInputElement);
words.hidden = false;
words.addEventListener('input', () => {
  const wanted = words.value.toLowerCase().split(/\s+/);
  for (const row of all('.calls-list > li', HTMLElement))
    row.hidden = !wanted.every((word) => row.textContent.toLowerCase().includes(word));
});
function openChosen() {
  const chosen = document.getElementById(location.hash.slice(1));
  if (chosen instanceof HTMLDetailsElement) chosen.open = true;
}
window.addEventListener('hashchange', openChosen);
openChosen();
