// Chooses the input on a map or in a list, and starts the run. Everything from the server is set as text, never as markup.
import {
  boundsAround,
  cornersOf,
  createMap,
  dataOf,
  drawBox,
  drawFootprints,
  drawPolygon,
  seenBox,
} from './shared/map.js';

const { base } = document.documentElement.dataset;
const form = document.querySelector('#new-run');
// Fields hide properties of the form that have their names, such as dataset or querySelector.
const formData = Reflect.get(HTMLElement.prototype, 'dataset', form);
const allIn = (selector) => Element.prototype.querySelectorAll.call(form, selector);
const listenTo = (type, listener) => EventTarget.prototype.addEventListener.call(form, type, listener);
const firstIn = (selector) => Element.prototype.querySelector.call(form, selector);
const find = (id) => document.getElementById(id);
const shownItems = 100;
const earlier = dataOf('earlier');

/** Time limit for reading lists. */
const answerWithinMs = 30_000;

async function call(path, body, { signal } = {}) {
  const response = await fetch(`${base}/api/${path}`, {
    ...(signal && { signal }),
    ...(body !== undefined && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error), { code: answer.code, details: answer.details ?? [] });
  return answer;
}

/** Reads from the app's API. Rejects with a readable message if no response arrives in time. */
function look(path, body) {
  return call(path, body, { signal: AbortSignal.timeout(answerWithinMs) }).catch((error) => {
    throw error.name === 'TimeoutError' ? new Error('the platform does not respond; try again in a moment') : error;
  });
}

/** What is chosen for each input of the step: items of the catalog, by collection and item, kept over searches; or another source. */
const slots = new Map(
  [...allIn('[data-slot]')].map((one) => [
    one.value,
    { kind: one.dataset.kind, isOptional: one.dataset.optional !== undefined, items: new Map(), other: null },
  ]),
);
// A page of an app's own may have none.
if (slots.size === 0) slots.set('', { kind: 'raster', isOptional: false, items: new Map(), other: null });
// Keeps a choice that the user made before this script ran.
let slot = firstIn('[data-slot]:checked')?.value ?? slots.keys().next().value;
slots.get(slot).other = firstIn('[data-source]:checked')?.value ?? null;
let chosen = slots.get(slot).items;
const keyOf = ({ collectionId, itemId }) => `${collectionId}/${itemId}`;
let found = [];

function choice(input, parts, previewHref) {
  const label = document.createElement('label');
  label.className = 'item-choice';
  label.append(input);
  if (previewHref)
    label.append(
      Object.assign(document.createElement('img'), {
        src: previewHref,
        alt: '',
        loading: 'lazy',
        width: 56,
        height: 40,
      }),
    );
  label.append(...parts);
  return label;
}
const smaller = (text) => Object.assign(document.createElement('small'), { textContent: text });

function aboutOf({ title, datetime, sourceType, cloudCover, bands }) {
  const facts = [
    datetime?.slice(0, 10),
    sourceType?.toLowerCase().replaceAll('_', ' '),
    cloudCover === null ? null : `${Math.round(cloudCover)} % clouds`,
    bands?.length > 1 && bands.length <= 8 ? bands.join(' ') : bands?.length > 8 ? `${bands.length} bands` : null,
  ]
    .filter(Boolean)
    .join(', ');
  return { title, facts };
}

let collections = null;
/** Collections of the platform. Fetched once; a failed fetch is repeated by the next search. */
function allCollections() {
  collections ??= look('collections').then(
    (answer) => {
      for (const { id, title } of answer.collections) find('collection').append(new Option(title ?? id, id));
      return answer.collections;
    },
    (error) => {
      collections = null;
      throw error;
    },
  );
  return collections;
}

/** The box that is searched; null for everywhere. */
let area = null;
let drawArea = () => {};
function setArea(box) {
  area = box;
  find('box').value = box ? box.map((n) => Number(n.toFixed(4))).join(', ') : '';
  drawArea(box);
  void search();
}

/** Null until the map has loaded, or if it cannot load. The form works without it. */
let map = null;
function useMap(made) {
  if (!made) return;
  map = made;
  for (const id of ['draw', 'search']) find(id).hidden = false;
  drawArea = drawBox(map, find('draw'), (box) => setArea(box));
  drawArea(area);
  allIn('[data-draws]').forEach(offerArea);
  showFound();
}

/** A parameter that is a place: drawn, taken from the map, or typed. */
function offerArea(button) {
  const name = button.dataset.draws;
  const field = firstIn(`[name="${CSS.escape(name)}"][data-parameter]`);
  const take = firstIn(`[data-takes="${CSS.escape(name)}"]`);
  const set = (geometry) => {
    field.value = JSON.stringify(geometry);
    foresee();
  };
  const show = drawPolygon(map, button, `parameter-${name}`, set);
  const showTyped = () => {
    try {
      const { type, geometry, features, coordinates } = JSON.parse(field.value);
      show(geometry ?? features?.[0]?.geometry ?? (coordinates ? { type, coordinates } : null));
    } catch {
      show(null);
    }
  };
  field.addEventListener('change', showTyped);
  take.addEventListener('click', () => {
    const corners = cornersOf(seenBox(map)).map((place) => place.map((n) => Number(n.toFixed(6))));
    const geometry = { type: 'Polygon', coordinates: [[...corners, corners[0]]] };
    show(geometry);
    set(geometry);
  });
  for (const one of [button, take]) one.hidden = false;
  showTyped();
}
function setChosen(item, isChosen) {
  if (isChosen) chosen.set(keyOf(item), item);
  else chosen.delete(keyOf(item));
  if (isChosen) allIn('[data-source]:checked').forEach((radio) => (radio.checked = false));
  showChosen();
}

function showChosen() {
  for (const box of find('items').querySelectorAll('input')) box.checked = chosen.has(box.value);
  const other = firstIn('[data-source]:checked');
  slots.get(slot).other = other?.value ?? null;
  for (const [name, { items, other: source }] of slots) {
    const place = find(`slot-${name}`);
    if (place) place.textContent = slotInWords(items, source);
  }
  const titles = [...chosen.values()].map(({ title, itemId }) => title ?? itemId);
  find('chosen').textContent =
    titles.length > 0
      ? `${titles.length === 1 ? 'Chosen' : `${titles.length} items are chosen`}: ${titles.join(', ')}`
      : other
        ? 'Selected: the one marked above.'
        : 'No input selected.';
  offerBands();
  foresee();
  drawItems();
}

function slotInWords(items, source) {
  if (items.size > 0) return [...items.values()].map(({ title, itemId }) => title ?? itemId).join(', ');
  if (source === null) return 'nothing is chosen';
  const { type, path } = JSON.parse(source);
  return type === 'local' ? path : 'a synthetic one';
}

/** The bands that the chosen items have, for the parameters that choose one. */
function offerBands() {
  const lists = [...slots.values()].flatMap(({ items }) => [...items.values()].map(({ bands }) => bands ?? []));
  const names = [...new Set(lists.flat())].filter((name) => name !== '');
  find('bands')?.replaceChildren(...names.map((name) => new Option(name, name)));
  offerChoices(names);
}

/** Every choice of a list, before those that the bands do not allow leave it. */
const allChoices = new Map(
  [...document.querySelectorAll('datalist[id^="choices-"]')].map((one) => [one, [...one.options]]),
);

/** Offers the choices whose bands the chosen items have; all of them if the items name no bands. */
function offerChoices(names) {
  const known = new Set(names.map((name) => name.toLowerCase()));
  for (const [list, options] of allChoices)
    list.replaceChildren(
      ...options.filter(
        ({ dataset }) =>
          known.size === 0 || !dataset.bands || dataset.bands.split(' ').every((band) => known.has(band.toLowerCase())),
      ),
    );
}

/** Shows the title of a choice below its field. */
function tellChoice(field) {
  const list = find(`choices-${field.name}`);
  const choice = allChoices.get(list)?.find(({ value }) => value === field.value);
  find(`choice-${field.name}`).textContent = choice?.textContent ?? (field.value === '' ? '' : 'Type to find one.');
}
document
  .querySelectorAll('[data-choices]')
  .forEach((field) => field.addEventListener('input', () => tellChoice(field)));

let foreseeing = 0;
/** What the run would take, and what of it cannot be, before anybody is asked. */
function foresee() {
  const mine = ++foreseeing;
  setTimeout(async () => {
    const input = inputOf();
    if (mine !== foreseeing || !formData.ready) return;
    const answer = input
      ? await look('runs/check', { stepId: formData.step, parameters: parameters(), input }).catch((error) => error)
      : {};
    if (mine !== foreseeing) return;
    clearProblems();
    const details = detailsOf(answer);
    // Skips empty fields: the user has not reached them yet.
    for (const detail of details) if (detail.field?.value !== '') tell(detail);
    if (answer instanceof Error && details.length === 0) tell({ message: answer.message });
    const foreseen = find('estimate');
    if (!foreseen) return;
    foreseen.textContent = [answer.estimate?.inWords, ...(answer.warnings ?? [])].filter(Boolean).join(' ');
    foreseen.hidden = foreseen.textContent === '';
  }, 300);
}

function drawItems() {
  if (!map) return;
  const features = found
    .filter(({ geometry, whyNot }) => geometry && !whyNot)
    .map((item) => ({
      type: 'Feature',
      geometry: item.geometry,
      properties: { key: keyOf(item), chosen: chosen.has(keyOf(item)) },
    }));
  drawFootprints(map, features, (hit, lngLat) => {
    const items = hit.flatMap(({ key }) => found.find((item) => keyOf(item) === key) ?? []);
    if (items.length === 1 && !items[0].previewHref) return setChosen(items[0], !chosen.has(keyOf(items[0])));
    offerOnMap(items, lngLat);
  });
}

/** A list where footprints lie over each other; with its picture where there is one alone. */
function offerOnMap(items, lngLat) {
  const place = document.createElement('div');
  if (items.length === 1 && items[0].previewHref)
    place.append(Object.assign(document.createElement('img'), { src: items[0].previewHref, alt: '' }));
  if (items.length > 1) place.append(`${items.length} items lie here:`);
  for (const item of items) {
    const { title, facts } = aboutOf(item);
    const box = Object.assign(document.createElement('input'), { type: 'checkbox', checked: chosen.has(keyOf(item)) });
    box.addEventListener('change', () => setChosen(item, box.checked));
    place.append(choice(box, [title, smaller(facts)]));
  }
  map.popupOf(lngLat, place);
}

/** Of searches that overtake each other the last one counts. */
let searches = 0;

async function search(offset = 0) {
  const mine = ++searches;
  const [from, to, clouds] = [find('from').value, find('to').value, find('clouds').value];
  try {
    const known = await allCollections();
    if (mine !== searches) return;
    const asked = find('collection').value ? [find('collection').value] : known.map(({ id }) => id);
    if (asked.length === 0) throw new Error('the platform has no collection to choose from');
    const { items, numberMatched } = await look('items/search', {
      stepId: formData.step,
      ...(slot ? { input: slot } : {}),
      collections: asked,
      limit: shownItems,
      offset,
      ...(area ? { bbox: area } : {}),
      ...(from || to ? { datetime: `${from || '1900-01-01'}T00:00:00Z/${to || '2199-12-31'}T23:59:59Z` } : {}),
    });
    if (mine !== searches) return;
    const clear = items.filter(
      ({ cloudCover }) => clouds === '' || cloudCover === null || cloudCover <= Number(clouds),
    );
    const fitting = clear.filter(({ whyNot }) => !whyNot);
    const added = find('all-sizes').checked ? clear : fitting;
    found = offset === 0 ? added : [...found, ...added];
    // Items of an earlier run have ids only: complete them.
    for (const { items: ofSlot } of slots.values())
      for (const item of added) if (ofSlot.has(keyOf(item))) ofSlot.set(keyOf(item), item);
    if (offset === 0) find('items').replaceChildren();
    find('items').append(
      ...added.map((item) => {
        const { title, facts } = aboutOf(item);
        const box = Object.assign(document.createElement('input'), {
          type: 'checkbox',
          name: 'item',
          value: keyOf(item),
          checked: chosen.has(keyOf(item)),
          disabled: Boolean(item.whyNot),
        });
        box.addEventListener('change', () => setChosen(item, box.checked));
        return choice(box, [title, smaller(item.whyNot ? `${facts}; it ${item.whyNot}` : facts)], item.previewHref);
      }),
    );
    const hidden = clear.length - fitting.length;
    const seen = offset + items.length;
    const isMore = numberMatched === null ? items.length === shownItems : seen < numberMatched;
    find('found').textContent =
      `${found.length} items are shown, newest first; the page looked at ${seen} of ${numberMatched ?? seen}${hidden > 0 ? `, ${hidden} of the last do not fit this step` : ''}`;
    find('more').hidden = !isMore;
    find('more').onclick = () => search(seen);
    if (offset === 0) showFound();
    showChosen();
  } catch (error) {
    if (mine !== searches) return;
    const again = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Search again' });
    again.className = 'plain tiny';
    again.addEventListener('click', () => {
      find('found').textContent = "Searching the platform's catalog";
      void search(offset);
    });
    find('found').replaceChildren(`The catalog search failed: ${error.message}. `, again);
  }
}
/** Moves the map to the found items, unless the user has chosen an area. */
function showFound() {
  const boxes = found.map(({ bbox }) => bbox).filter((bbox) => bbox?.length === 4);
  if (map && !area && boxes.length > 0) map.fitBounds(boundsAround(boxes), { padding: 60, maxZoom: 8, animate: false });
  drawItems();
}
find('search').addEventListener('click', () => map && setArea(seenBox(map)));
find('box').addEventListener('change', ({ target }) => {
  const box = target.value.split(',').map(Number);
  setArea(target.value.trim() !== '' && box.length === 4 && box.every(Number.isFinite) ? box : null);
});
for (const id of ['collection', 'from', 'to', 'clouds', 'all-sizes'])
  find(id).addEventListener('change', () => search());
listenTo('change', ({ target }) => {
  if (target.dataset.slot !== undefined) return void turnTo(target.value);
  if (target.dataset.source === undefined) return;
  chosen.clear();
  showChosen();
});

/** Lets the user choose another input. */
function turnTo(name) {
  slot = name;
  chosen = slots.get(slot).items;
  showLocal();
  showChosen();
  return search();
}
let local = { inputs: [], vectors: [] };
function radio(value) {
  const made = Object.assign(document.createElement('input'), {
    type: 'radio',
    name: 'input',
    value: JSON.stringify(value),
  });
  made.dataset.source = '';
  return made;
}
/** What the app's own folder has for the input, and which of the sources is chosen. */
function showLocal() {
  const { kind, other } = slots.get(slot);
  const names = (kind === 'vector' ? local.vectors : local.inputs) ?? [];
  find('local').replaceChildren(
    ...names.map((name) => choice(radio({ type: 'local', path: name }), [`${name}, from the app's own folder`])),
  );
  const isSame = (value) => {
    const [one, wanted] = [JSON.parse(value), JSON.parse(other)];
    return one.type === wanted?.type && one.path === wanted.path;
  };
  for (const one of allIn('[data-source]')) one.checked = isSame(one.value);
}
const sourcesOfEarlier =
  earlier?.type === 'named'
    ? earlier.inputs
    : earlier
      ? Object.fromEntries([...slots.keys()].map((name) => [name, earlier]))
      : {};
for (const [name, source] of Object.entries(sourcesOfEarlier)) {
  const place = slots.get(name);
  if (source.type === 'platform') for (const item of source.items) place?.items.set(keyOf(item), item);
  else if (place) place.other = JSON.stringify(source);
}
listenTo('change', ({ target }) => 'parameter' in target.dataset && foresee());

function parameters() {
  return Object.fromEntries(
    [...allIn('[data-parameter]')].flatMap((field) => {
      const { type, optional } = field.dataset;
      if (type === 'boolean') return [[field.name, field.checked]];
      if (field.value === '' && optional !== undefined) return [];
      return [
        [field.name, type === 'string' || type === 'area' || field.value === '' ? field.value : Number(field.value)],
      ];
    }),
  );
}

function sourceOf({ items, other }) {
  if (items.size === 0) return other === null ? null : JSON.parse(other);
  return {
    type: 'platform',
    items: [...items.values()].map(({ collectionId, itemId }) => ({ collectionId, itemId })),
  };
}

/** Null while an input that the step needs is not chosen. */
function inputOf() {
  if (slots.size === 1) return sourceOf(slots.get(slot));
  const sources = [...slots].map(([name, one]) => [name, sourceOf(one), one.isOptional]);
  if (sources.some(([, source, isOptional]) => !source && !isOptional)) return null;
  return { type: 'named', inputs: Object.fromEntries(sources.filter(([, source]) => source)) };
}

/** The field of a parameter; null if there is none. */
const fieldOf = (name) => firstIn(`[name="${CSS.escape(name)}"][data-parameter]`);
/** Assigns the details of an error response to fields. For invalid parameters a path is the parameter's name, otherwise a place in the request. */
const detailsOf = ({ code, details = [] }) =>
  details.map(({ path, message }) => ({
    field: code === 'invalid_parameters' ? fieldOf(path) : fieldOf(/^parameters\.(.+)$/.exec(path)?.[1] ?? ''),
    isOfInput: code !== 'invalid_parameters' && /^input\b/.test(path),
    message,
  }));

/** `must be at most 60` beside `Altitude of the light` as a sentence. */
function tell({ field = null, isOfInput = false, message }) {
  const place = find(field ? `problem-${field.name}` : isOfInput ? 'problem-of-input' : 'problem-of-form');
  const subject = field?.closest('label')?.firstChild.textContent.trim();
  const sentence = `${subject ? `${subject} ` : ''}${message}`;
  const text = `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
  place.textContent = place.hidden ? text : `${place.textContent} ${text}`;
  place.hidden = false;
  field?.setAttribute('aria-invalid', 'true');
  return field;
}

function clearProblems() {
  allIn('.problem').forEach((place) => (place.hidden = true));
  allIn('[aria-invalid]').forEach((field) => field.removeAttribute('aria-invalid'));
}

listenTo('submit', async (event) => {
  event.preventDefault();
  foreseeing += 1;
  clearProblems();
  const input = inputOf();
  if (!input) return void tell({ isOfInput: true, message: slots.size > 1 ? 'choose each input' : 'choose an input' });
  const button = firstIn('[type="submit"]');
  button.disabled = true;
  try {
    const run = await call('runs', { stepId: formData.step, parameters: parameters(), input });
    location.assign(`${base}/runs/${run.id}`);
  } catch (error) {
    const fields = detailsOf(error).map(tell);
    if (fields.length === 0) tell({ message: error.message });
    const field = fields.find(Boolean);
    // A folded group hides its fields and their messages.
    fields.forEach((one) => one?.closest('details')?.setAttribute('open', ''));
    field?.focus();
    button.disabled = false;
  }
});

// All listeners are attached. The form works while the lists and the map load.
showLocal();
formData.ready = 'true';
firstIn('[type="submit"]').disabled = false;
showChosen();
void search();
void look('inputs').then(
  (answer) => {
    local = answer;
    showLocal();
  },
  () => {},
);
void createMap(find('map')).then(useMap);
