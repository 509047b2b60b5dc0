// @ts-check
// Checks all boxes of a page, or none. The keys a and r decide on the request that is shown.
import { all, around, first } from './shared/dom.js';

document.addEventListener('change', (event) => {
  const every = around(event, '[data-check-all]', HTMLInputElement);
  if (every) for (const box of all('input[form="bulk"]', HTMLInputElement)) box.checked = every.checked;
});

// The request that is shown stays, whatever else is decided meanwhile: it is in the address, by which the page is brought up to date.
function pin() {
  const { op } = first('#request', HTMLElement)?.dataset ?? {};
  const address = new URL(location.href);
  if (op === undefined || address.searchParams.has('op')) return;
  address.searchParams.set('op', op);
  history.replaceState(null, '', address);
}
pin();
document.addEventListener('live', pin);
first('#request', HTMLElement)?.focus({ preventScroll: true });

/** Time after the start of the page in which a key decides nothing: it may be meant for the request before. */
const restMs = 600;
document.addEventListener('keydown', (event) => {
  const { key, repeat, altKey, ctrlKey, metaKey } = event;
  // A key that is held must not decide on one request after another.
  if (repeat || performance.now() < restMs || altKey || ctrlKey || metaKey) return;
  const button = around(event, '#request', HTMLElement) && first(`#request [data-key="${key}"]`, HTMLButtonElement);
  if (!button || (key !== 'a' && key !== 'r')) return;
  button.click();
  button.disabled = true;
});
