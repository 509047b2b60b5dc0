// Chooses the input on a map or in a list, and starts the run. Everything from the server is set as text, never as markup.
import { createMap, drawFootprints } from './shared/map.js';

const { base } = document.documentElement.dataset;
const form = document.querySelector('#new-run');
const find = (id) => document.getElementById(id);
const shownItems = 50;

async function call(path, body) {
  const response = await fetch(`${base}/api/${path}`, body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error), { details: answer.details ?? [] });
  return answer;
}

function choice(value, text, previewHref) {
  const label = document.createElement('label');
  label.className = 'item-choice';
  const radio = Object.assign(document.createElement('input'), { type: 'radio', name: 'input', value: JSON.stringify(value) });
  label.append(radio);
  if (previewHref) label.append(Object.assign(document.createElement('img'), { src: previewHref, alt: '', loading: 'lazy' }));
  label.append(text);
  return label;
}

const collections = await call('collections').then((answer) => answer.collections, () => []);
for (const { id, title } of collections) find('collection').append(new Option(title ?? id, id));

const map = await createMap(find('map'));
const wrap = (lng) => ((((lng + 180) % 360) + 360) % 360) - 180;
function seenBox() {
  if (!map) return undefined;
  const { _sw: sw, _ne: ne } = map.getBounds();
  if (ne.lng - sw.lng >= 360) return [-180, Math.max(-90, sw.lat), 180, Math.min(90, ne.lat)];
  return [wrap(sw.lng), Math.max(-90, sw.lat), wrap(ne.lng), Math.min(90, ne.lat)];
}

function choose(id) {
  const radio = [...find('items').querySelectorAll('input')].find((one) => JSON.parse(one.value).items[0].itemId === id);
  if (!radio) return;
  radio.checked = true;
  radio.focus();
}

async function search(box) {
  const asked = find('collection').value ? [find('collection').value] : collections.map(({ id }) => id);
  const [from, to] = [find('from').value, find('to').value];
  try {
    if (asked.length === 0) throw new Error('the platform has no collection to choose from');
    const { items, numberMatched } = await call('items/search', { collections: asked, limit: shownItems, ...(box ? { bbox: box } : {}), ...(from || to ? { datetime: `${from || '1900-01-01'}T00:00:00Z/${to || '2199-12-31'}T23:59:59Z` } : {}) });
    find('items').replaceChildren(...items.map((item) => choice({ type: 'platform', items: [{ collectionId: item.collectionId, itemId: item.itemId }] }, [item.title, item.datetime?.slice(0, 10), item.sourceType].filter(Boolean).join(', '), item.previewHref)));
    find('found').textContent = `${numberMatched ?? items.length} items, the newest ${items.length} below and on the map`;
    const features = items.filter(({ geometry }) => geometry).map(({ geometry, itemId }) => ({ type: 'Feature', geometry, properties: { itemId } }));
    if (map) drawFootprints(map, features, ({ itemId }) => choose(itemId));
  } catch (error) {
    find('found').textContent = `The catalog cannot be searched: ${error.message}`;
  }
}
find('search').addEventListener('click', () => search(seenBox()));
find('collection').addEventListener('change', () => search(seenBox()));
await search();
const { inputs } = await call('inputs').catch(() => ({ inputs: [] }));
find('local').append(...inputs.map((name) => choice({ type: 'local', path: name }, `${name}, from the app's own folder`)));
form.dataset.ready = 'true';

function parameters() {
  return Object.fromEntries(
    [...form.querySelectorAll('[data-parameter]')].map((field) => {
      const { type } = field.dataset;
      if (type === 'boolean') return [field.name, field.checked];
      return [field.name, type === 'string' || field.value === '' ? field.value : Number(field.value)];
    }),
  );
}

function tell(name, message) {
  const place = find(`problem-${name}`) ?? find('problem');
  place.textContent = place.hidden ? message : `${place.textContent}; ${message}`;
  place.hidden = false;
  const field = form.querySelector(`[name="${CSS.escape(name)}"][data-parameter]`);
  field?.setAttribute('aria-invalid', 'true');
  return field;
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  form.querySelectorAll('.problem').forEach((place) => (place.hidden = true));
  form.querySelectorAll('[aria-invalid]').forEach((field) => field.removeAttribute('aria-invalid'));
  const input = form.querySelector('[name="input"]:checked');
  if (!input) return void tell('input', 'choose an input');
  const button = form.querySelector('[type="submit"]');
  button.disabled = true;
  try {
    const run = await call('runs', { stepId: form.dataset.step, parameters: parameters(), input: JSON.parse(input.value) });
    location.assign(`${base}/runs/${run.id}`);
  } catch (error) {
    const fields = (error.details ?? []).map(({ path, message }) => tell(path.replace(/^parameters\./, ''), message));
    if (fields.length === 0) tell('', error.message);
    fields.find(Boolean)?.focus();
    button.disabled = false;
  }
});
