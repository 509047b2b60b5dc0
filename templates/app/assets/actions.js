// @ts-check
// Cancel and retry.
import { around, byId } from './shared/dom.js';

document.addEventListener('click', async (event) => {
  const button = around(event, '[data-action]', HTMLButtonElement);
  const { action, then } = button?.dataset ?? {};
  if (!button || !action) return;
  button.disabled = true;
  const problem = byId('action-problem', HTMLElement);
  try {
    const response = await fetch(action, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    /** @type {{ id: string, error: string }} */
    const answer = await response.json();
    if (response.ok && then) return location.assign(then + answer.id);
    problem.textContent = response.ok ? '' : answer.error;
  } catch {
    problem.textContent = 'The app does not answer; try again in a moment.';
  }
  problem.hidden = problem.textContent === '';
  button.disabled = false;
});
