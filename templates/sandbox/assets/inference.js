// @ts-check
// Starts a job; the list keeps itself up to date. A scene of the catalog becomes a file first.
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
    await begin();
    say('');
  } catch (error) {
    say(error instanceof Refusal ? error.message : 'The sandbox cannot be reached. Try again in a moment.');
  } finally {
    if (button) button.disabled = false;
  }
});

/** Longest wait until the sandbox has read a copied scene, in milliseconds. */
const longestWaitMs = 120_000;
/** Pause between two status calls, in milliseconds. */
const pauseMs = 500;

/** The sandbox refused a call. */
class Refusal extends Error {}

/** @param {Response} response */
async function answerOf(response) {
  const answer = await response.json();
  if (response.ok) return answer;
  /** @type {{ error: string, details?: { path: string, message: string }[] }} */
  const { error, details = [] } = answer;
  throw new Refusal([error, ...details.map(({ path, message }) => `${path} ${message}`)].join('; '));
}

/** Starts the job. Throws `Refusal` if the sandbox refuses. */
async function begin() {
  const scene = file?.selectedOptions[0]?.dataset ?? {};
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form))
    if (typeof value === 'string' && value.trim()) fields.set(name, value.trim());
  if (scene['scene'] !== undefined) fields.set('fileId', await copied(scene['scene'], scene));
  await answerOf(await fetch('/browser/public/inference/run', { method: 'POST', body: fields }));
}

/**
 * Copies the data of a scene to the files, and returns the file's id when the sandbox has read it.
 * @param {string} href
 * @param {DOMStringMap} scene
 */
async function copied(href, scene) {
  const copying = first('#copying', HTMLElement);
  if (copying) copying.hidden = false;
  try {
    const data = await fetch(href);
    if (!data.ok) await answerOf(data);
    const upload = new FormData();
    upload.append('sourceType', scene['sourceType'] ?? '');
    upload.append('file', await data.blob(), `${(scene['name'] ?? 'scene').replaceAll(/[/\\]/g, '_')}.tif`);
    const { fileId } = await answerOf(await fetch('/browser/public/file/upload', { method: 'POST', body: upload }));
    for (let left = longestWaitMs / pauseMs; left > 0; left--) {
      const { status } = await answerOf(await fetch(`/browser/public/file/status/${encodeURIComponent(fileId)}`));
      if (status === 'COMPLETED') return fileId;
      if (status === 'FAILED')
        throw new Refusal(`The sandbox could not read the data of ${scene['name'] ?? 'the scene'}.`);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    throw new Refusal(
      `The sandbox has not read the data of ${scene['name'] ?? 'the scene'} yet. Choose its file later.`,
    );
  } finally {
    if (copying) copying.hidden = true;
  }
}

// A file with fewer bands than the model needs cannot be chosen.
const model = first('[name="modelId"]', HTMLSelectElement, form);
const file = first('[name="fileId"]', HTMLSelectElement, form);
function offerFiles() {
  if (!model || !file) return;
  const needed = Number(model.selectedOptions[0]?.dataset['bands'] ?? 0);
  const options = all('option', HTMLOptionElement, file);
  for (const option of options) option.disabled = Number(option.dataset['bands'] ?? 0) < needed;
  const fitting = options.find(({ disabled }) => !disabled);
  if ((file.selectedOptions[0]?.disabled ?? true) && fitting) fitting.selected = true;
  const noneFits = first('#none-fits', HTMLElement);
  if (noneFits) noneFits.hidden = fitting !== undefined;
  if (button) button.disabled = fitting === undefined;
}
model?.addEventListener('change', offerFiles);
offerFiles();
