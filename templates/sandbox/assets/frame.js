// @ts-check
// Decides without leaving the page, so that the app next to it stays as it is. A reload leads back to the place in the app.
import { byId, first } from './shared/dom.js';

const problem = byId('frame-problem', HTMLElement);
document.addEventListener('submit', async (event) => {
  const { target: form, submitter } = event;
  if (!(form instanceof HTMLFormElement) || form.dataset['here'] === undefined) return;
  event.preventDefault();
  const button = submitter instanceof HTMLButtonElement ? submitter : null;
  if (button) button.disabled = true;
  // After a decision the response leads to the list of approvals.
  const response = await fetch(form.action, { method: 'POST', redirect: 'manual' }).catch(() => null);
  problem.hidden = response?.type === 'opaqueredirect';
  problem.textContent = problem.hidden
    ? ''
    : response === null
      ? 'The sandbox does not answer.'
      : `The decision came too late (${response.status}).`;
  if (button) button.disabled = false;
  document.dispatchEvent(new Event('refresh'));
});

// The app names its place by a message. After a reload the launch leads to its first page, and from there to that place.
const app = first('iframe.app', HTMLIFrameElement);
const launchForm = first('#launch', HTMLFormElement);
const key = `place of ${location.pathname}`;
const longestPlace = 2_000;
let placeBefore = sessionStorage.getItem(key);
window.addEventListener('message', ({ source, origin, data }) => {
  // A field of the form may be called action, too.
  const action = launchForm?.getAttribute('action');
  if (!app || !action || source !== app.contentWindow || origin !== new URL(action, location.href).origin) return;
  const { place } = data ?? {};
  if (typeof place !== 'string' || !place.startsWith('/launches/') || place.length > longestPlace) return;
  const target = placeBefore;
  placeBefore = null;
  if (target !== null && target !== place && new URL(target, origin).origin === origin) app.src = origin + target;
  else sessionStorage.setItem(key, place);
});
