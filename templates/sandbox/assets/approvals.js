// @ts-check
// Checks all boxes of a page, or none. The keys a and r decide on the request that is shown.
import { all, around, first } from './shared/dom.js';

document.addEventListener('change', (event) => {
  const every = around(event, '[data-check-all]', HTMLInputElement);
  if (every) for (const box of all('input[form="bulk"]', HTMLInputElement)) box.checked = every.checked;
});

// The request that is shown stays, whatever else is decided meanwhile.
const request = first('#request', HTMLElement);
const { op } = request?.dataset ?? {};
if (request && op !== undefined) {
  const address = new URL(location.href);
  address.searchParams.set('op', op);
  history.replaceState(null, '', address);
  request.focus({ preventScroll: true });
}
document.addEventListener('keydown', (event) => {
  const { key, repeat, altKey, ctrlKey, metaKey } = event;
  // A key that is held must not decide on one request after another.
  if (repeat || altKey || ctrlKey || metaKey || !around(event, '#request', HTMLElement)) return;
  if (key === 'a' || key === 'r') first(`#request [data-key="${key}"]`, HTMLButtonElement)?.click();
});
