// @ts-check
// Decides without leaving the page, so that the app next to it stays as it is.
import { byId } from './shared/dom.js';

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
