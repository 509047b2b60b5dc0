// @ts-check
// The page of a new run: chooses the input on a map or in a list, estimates the run, and starts it.
import { byId, first } from './shared/dom.js';
import { createMap } from './shared/map.js';
import { call, look, pageOfRun, Refusal } from './new-run/api.js';
import { choice } from './new-run/choice.js';
import { allIn, firstIn, formData, isField, listenTo } from './new-run/form.js';
import { chooseEarlier, current, inputOf, inWords, keyOf, slots, titlesOf, turnTo } from './new-run/inputs.js';
import * as items from './new-run/items.js';
import { keep, takeKept } from './new-run/kept.js';
import { fill, offerAreas, offerBands, parameters } from './new-run/parameters.js';
import * as problems from './new-run/problems.js';

/** @import { InputSource } from '../../../src/app/processing/run-input.ts' */

// A page of a fork may lack the choice of an analysis.
const analysis = first('#analysis', HTMLSelectElement);
const title = first('h1', HTMLElement)?.textContent.trim() ?? '';

/** The item of the step's main input, as the address has it. Null for several items. */
function chosenHint() {
  const main = [...slots.values()].find(({ kind }) => kind !== 'vector');
  const [only, another] = main?.items.values() ?? [];
  return !only || another ? null : [only.collectionId, only.itemId].map(encodeURIComponent).join('/');
}

/** Keeps the choice over a reload and in the history. */
function keepInAddress() {
  const address = new URL(location.href);
  const hint = chosenHint();
  if (hint === null) address.searchParams.delete('item');
  else address.searchParams.set('item', hint);
  if (address.href === location.href) return;
  history.replaceState(null, '', address);
  document.dispatchEvent(new Event('moved'));
}

analysis?.addEventListener('change', () => {
  const address = new URL(analysis.value, new URL('.', location.href));
  const hint = chosenHint();
  if (hint !== null) address.searchParams.set('item', hint);
  location.assign(address);
});
// A page that the browser has kept shows the analysis that it is the form of.
window.addEventListener('pageshow', () => analysis && (analysis.value = formData['step'] ?? ''));
// In a field of the search, Enter asks for nothing.
for (const id of ['words', 'box', 'clouds', 'from', 'to'])
  first(`#${id}`, HTMLInputElement)?.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') event.preventDefault();
  });

/** Shows the choices of all inputs, and what follows from them. */
function showChosen() {
  const slot = current();
  for (const [name, one] of slots) {
    const place = first(`#slot-${CSS.escape(name)}`, HTMLElement);
    if (place) place.textContent = inWords(one);
  }
  const titles = titlesOf(slot.items);
  const subject = titles.length > 3 ? `${titles.length} items` : titles.join(', ') || (slot.other ? inWords(slot) : '');
  byId('chosen', HTMLElement).textContent = subject === '' ? 'No input selected.' : `${title} on ${subject}`;
  keepInAddress();
  const bands = [...slots.values()].flatMap((one) => [...one.items.values()].flatMap((item) => item.bands ?? []));
  offerBands([...new Set(bands)].filter((name) => name !== ''));
  estimate();
  items.showChosen();
}

let estimates = 0;
/** Shows what the run would take, and problems, before the app asks for approval. */
function estimate() {
  const mine = ++estimates;
  setTimeout(async () => {
    const input = inputOf();
    if (mine !== estimates || !formData['ready']) return;
    /** @type {{ estimate?: { inWords: string } | null, warnings?: string[] }} */
    let answer = {};
    /** @type {problems.Problem[]} */
    let found = [];
    try {
      if (input) answer = await look('runs/check', { stepId: formData['step'], parameters: parameters(), input });
    } catch (error) {
      found = problems.problemsOf(error);
    }
    if (mine !== estimates) return;
    problems.clear();
    // Skips empty fields: the user has not reached them yet.
    for (const one of found) if (one.field?.value !== '') problems.show(one);
    const place = first('#estimate', HTMLElement);
    if (!place) return;
    place.textContent = [answer.estimate?.inWords, ...(answer.warnings ?? [])].filter(Boolean).join(' ');
    place.hidden = place.textContent === '';
  }, 300);
}

/** @type {{ inputs?: string[], vectors?: string[] }} */
let local = {};
/** Shows the files of the app's own folder for the input, and the chosen source. */
function showLocal() {
  const { kind, other } = current();
  const names = (kind === 'vector' ? local.vectors : local.inputs) ?? [];
  byId('local', HTMLElement).replaceChildren(
    ...names.map((path) => {
      const value = JSON.stringify({ type: 'local', path });
      const radio = Object.assign(document.createElement('input'), { type: 'radio', name: 'input', value });
      radio.dataset['source'] = '';
      return choice(radio, [`${path}, from the app's own folder`]);
    }),
  );
  /** @type {InputSource | null} */
  const wanted = other === null ? null : JSON.parse(other);
  const pathOf = (/** @type {InputSource | null} */ source) => (source?.type === 'local' ? source.path : null);
  for (const radio of allIn('[data-source]', HTMLInputElement)) {
    /** @type {InputSource} */
    const source = JSON.parse(radio.value);
    radio.checked = source.type === wanted?.type && pathOf(source) === pathOf(wanted);
  }
}

listenTo('change', ({ target }) => {
  if (!isField(target)) return;
  if (target.dataset['slot'] !== undefined) {
    turnTo(target.value);
    showLocal();
    showChosen();
    void items.search();
  } else if (target.dataset['source'] !== undefined) {
    current().items.clear();
    current().other = target.value;
    showChosen();
  } else if (target.dataset['parameter'] !== undefined) estimate();
});

listenTo('submit', async (event) => {
  event.preventDefault();
  estimates += 1;
  problems.clear();
  const input = inputOf();
  if (!input)
    return problems.show({ isOfInput: true, message: slots.size > 1 ? 'choose each input' : 'choose an input' });
  const button = firstIn('[type="submit"]', HTMLButtonElement);
  if (button) button.disabled = true;
  try {
    /** @type {{ id: string }} */
    const run = await call('runs', { stepId: formData['step'], parameters: parameters(), input });
    location.assign(pageOfRun(run.id));
  } catch (error) {
    if (error instanceof Refusal && error.code === 'no_session') keep(formData, { parameters: parameters(), input });
    const found = problems.problemsOf(error);
    found.forEach(problems.show);
    // A folded group hides its fields and their messages.
    for (const { field } of found) field?.closest('details')?.setAttribute('open', '');
    found.find(({ field }) => field)?.field?.focus();
    if (button) button.disabled = false;
  }
});

items.listen((item, isChosen) => {
  const chosen = current().items;
  if (isChosen) chosen.set(keyOf(item), item);
  else chosen.delete(keyOf(item));
  if (isChosen) {
    current().other = null;
    for (const radio of allIn('[data-source]:checked', HTMLInputElement)) radio.checked = false;
  }
  showChosen();
});
document.addEventListener('found', showChosen);

// All listeners are attached. The form works while the lists and the map load.
// An address with a run or an item asks for that.
const { searchParams } = new URL(location.href);
const kept = searchParams.has('from') || searchParams.has('item') ? null : takeKept(formData);
if (kept) fill(kept.parameters);
chooseEarlier(kept?.input ?? null);
const notice = first('#kept', HTMLElement);
if (notice) notice.hidden = kept === null;
showLocal();
formData['ready'] = 'true';
const start = firstIn('[type="submit"]', HTMLButtonElement);
if (start) start.disabled = false;
showChosen();
items.beginWithChosen();
void items.search();
void look('inputs').then(
  (answer) => {
    local = answer;
    showLocal();
  },
  () => {},
);
void createMap(byId('map', HTMLElement)).then((map) => {
  if (!map) return;
  items.useMap(map);
  offerAreas(map, estimate);
});
