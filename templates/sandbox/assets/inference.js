// @ts-check
// Starts a job; the list keeps itself up to date.
import { all, byId, first } from './shared/dom.js';

const form = byId('run', HTMLFormElement);
const problem = first('.problem', HTMLElement, form);
const button = first('[type="submit"]', HTMLButtonElement, form);

/** @param {string} text */
function say(text) {
  if (!problem) return;
  problem.hidden = text === '';
  problem.textContent = text;
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  if (button) button.disabled = true;
  try {
    say(await begin());
  } catch {
    say('The sandbox cannot be reached. Try again in a moment.');
  } finally {
    if (button) button.disabled = false;
  }
});

/** Returns the reason why the job did not begin; an empty text if it did. */
async function begin() {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form))
    if (typeof value === 'string' && value.trim()) fields.set(name, value.trim());
  const response = await fetch('/browser/public/inference/run', { method: 'POST', body: fields });
  if (response.ok) return '';
  /** @type {{ error: string, details?: { path: string, message: string }[] }} */
  const { error, details = [] } = await response.json();
  return [error, ...details.map(({ path, message }) => `${path} ${message}`)].join('; ');
}

// A file with fewer bands than the model needs cannot be chosen.
const model = first('[name="modelId"]', HTMLSelectElement, form);
const file = first('[name="fileId"]', HTMLSelectElement, form);
function offerFiles() {
  if (!model || !file) return;
  const needed = Number(model.selectedOptions[0]?.dataset['bands'] ?? 0);
  const options = all('option', HTMLOptionElement, file);
  for (const option of options) option.disabled = Number(option.dataset['bands'] ?? 0) < needed;
  if (file.selectedOptions[0]?.disabled ?? true) file.value = options.find(({ disabled }) => !disabled)?.value ?? '';
}
model?.addEventListener('change', offerFiles);
offerFiles();
