// Sends the examples to this sandbox. The key stays in this tab.
const key = document.querySelector('#key');
const said = document.querySelector('#key-said');
key.value = sessionStorage.getItem('api-key') ?? '';
key.addEventListener('change', () => sessionStorage.setItem('api-key', key.value));
document.querySelector('#make-key').addEventListener('click', async () => {
  const response = await fetch('/docs/key', { method: 'POST' }).catch(() => null);
  if (!response) return void (said.textContent = 'The sandbox cannot be reached. Try again in a moment.');
  const answer = await response.json();
  if (!response.ok) return void (said.textContent = answer.error);
  key.value = answer.apiKey;
  sessionStorage.setItem('api-key', key.value);
  said.textContent = `A key with all permissions. Revoke it by DELETE /sandbox/keys/${answer.id}`;
});

document.addEventListener('submit', async (event) => {
  const form = event.target.closest('.try');
  if (!form) return;
  event.preventDefault();
  const output = form.querySelector('output');
  const { method, type, wantsKey } = form.dataset;
  const { address, body } = form.elements;
  const hole = /\{[A-Za-z]+\}/.exec(address.value)?.[0];
  if (hole) return void show(output, `Put a value for ${hole} into the address first.`);
  const began = performance.now();
  try {
    const response = await fetch(address.value, {
      method,
      headers: {
        ...(wantsKey === 'true' ? { 'x-api-key': key.value } : {}),
        ...(body ? { 'content-type': type } : {}),
      },
      ...(body ? { body: body.value } : {}),
    });
    const media = response.headers.get('content-type') ?? '';
    const text = /json|text|xml/.test(media)
      ? await response.text()
      : `${(await response.blob()).size} bytes of ${media}`;
    const hint =
      (response.status === 401 || response.status === 403) && wantsKey === 'true' && !key.value
        ? '. Make a key above first'
        : '';
    show(
      output,
      `${response.status} ${response.statusText}, ${Math.round(performance.now() - began)} ms${hint}`,
      formatted(text),
    );
  } catch (error) {
    show(output, error.message);
  }
});

function formatted(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
function show(output, line, body) {
  const parts = [Object.assign(document.createElement('strong'), { textContent: line })];
  if (body) {
    const pre = Object.assign(document.createElement('pre'), { textContent: body.slice(0, 20_000), tabIndex: 0 });
    parts.push(pre);
  }
  output.replaceChildren(...parts);
}

document.addEventListener('click', async ({ target }) => {
  if (target.dataset.curl === undefined) return;
  const form = target.closest('form');
  const words = (target.dataset.words ??= target.textContent);
  const { method, type, wantsKey } = form.dataset;
  const { address, body } = form.elements;
  const lines = [`curl -X ${method} "${location.origin}${address.value}"`];
  if (wantsKey === 'true') lines.push(`-H "x-api-key: ${key.value || '$API_KEY'}"`);
  if (body) lines.push(`-H "content-type: ${type}"`, `--data '${body.value.replaceAll("'", "'\\''")}'`);
  else if (type) lines.push('-F "file=@file.tif"  # and the other fields of the form');
  await navigator.clipboard.writeText(lines.join(' \\\n  ')).then(
    () => {
      target.textContent = 'Copied';
      setTimeout(() => (target.textContent = words), 1_500);
    },
    () => show(form.querySelector('output'), '', lines.join(' \\\n  ')),
  );
});
