// @ts-check
// Keeps the parts of a page that are marked `data-live` as the server has them: fetches the page again when an event says so.
import { Idiomorph } from '/assets/vendor/idiomorph/idiomorph.esm.js';
import { all } from './dom.js';

const regions = () => all('[data-live]', Element);
let busy = false;
let again = false;
let ended = false;

/** Open details stay open, what somebody is typing stays typed, and what is checked stays checked. */
const keep = () => ({
  // Idiomorph leaves all content of the active element as it is, so a region that has the focus would never change.
  ignoreActiveValue: document.activeElement?.matches('input, select, textarea') ?? false,
  callbacks: {
    /**
     * @param {string} name
     * @param {Element} node
     */
    beforeAttributeUpdated: (name, node) =>
      !(node.tagName === 'DETAILS' && name === 'open') && !(node.tagName === 'INPUT' && name === 'checked'),
  },
});

/**
 * True if an event concerns this page: the event names topics, and the page its own in `data-topics`.
 * @param {string} changed
 */
function concerns(changed) {
  const { topics } = document.documentElement.dataset;
  if (!topics || changed === '') return true;
  return topics.split(' ').some((topic) => changed.split(' ').includes(topic));
}

/** Shortest time between two fetches, however many changes there are. */
const pauseMs = 700;

async function refresh() {
  if (ended) return;
  if (busy) return void (again = true);
  busy = true;
  try {
    const response = await fetch(document.documentElement.dataset['source'] ?? location.href, {
      headers: { accept: 'text/html' },
      cache: 'no-cache',
    });
    if (isOver(response)) return;
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
    document.dispatchEvent(new CustomEvent('fetched', { detail: fresh }));
    for (const region of regions()) {
      const next = fresh.getElementById(region.id);
      if (next) void Idiomorph.morph(region, next, keep());
    }
    document.dispatchEvent(new CustomEvent('live'));
  } catch {
    // The server cannot be reached: `listen` retries and then refreshes.
  } finally {
    setTimeout(() => {
      busy = false;
      if (!again) return;
      again = false;
      void refresh();
    }, pauseMs);
  }
}

/** Notice above a page that receives no updates. */
const notice = Object.assign(document.createElement('p'), { className: 'notice warn', id: 'not-live', hidden: true });
notice.setAttribute('role', 'status');
document.querySelector('main')?.prepend(notice);
/** @type {ReturnType<typeof setTimeout> | undefined} */
let noticing;
/** @type {string | null} */
let announced = null;
/**
 * Shows the notice after a delay, because most connections recover within seconds. Null hides it. A repeated text keeps its delay: browsers reconnect more often.
 * @param {string | null} text
 */
function say(text, afterMs = 3_000) {
  if (text !== null && text === announced) return;
  clearTimeout(noticing);
  announced = text;
  if (text === null) notice.hidden = true;
  else
    noticing = setTimeout(() => {
      notice.textContent = text;
      notice.hidden = false;
    }, afterMs);
}

/** @type {EventSource | null} */
let source = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let retrying;
let tries = 0;
const firstRetryMs = 2_000;
const longestRetryMs = 30_000;

function listen() {
  clearTimeout(retrying);
  const { events } = document.documentElement.dataset;
  if (source || ended || document.hidden || regions().length === 0 || events === undefined) return;
  source = new EventSource(events);
  source.addEventListener('change', ({ data }) => concerns(String(data)) && refresh());
  source.addEventListener('open', () => {
    tries = 0;
    say(null);
    void refresh();
  });
  source.addEventListener('error', () => {
    say('This page is not live: the server cannot be reached. The page keeps trying.');
    // Browsers do not reconnect after a status other than 200.
    if (source?.readyState !== EventSource.CLOSED) return;
    stop();
    const most = Math.min(longestRetryMs, firstRetryMs * 2 ** tries++);
    retrying = setTimeout(listen, most / 2 + (Math.random() * most) / 2);
    // The page's own status shows whether the session has ended.
    void refresh();
  });
}
function stop() {
  clearTimeout(retrying);
  source?.close();
  source = null;
}
/**
 * True if the session has ended or the page's subject is gone.
 * @param {Response} response
 */
function isOver({ status }) {
  if (status < 400 || status >= 500 || status === 408 || status === 429) return false;
  ended = true;
  stop();
  say('This page is no longer available. Reload it to see the reason and what to do.', 0);
  return true;
}
document.addEventListener('refresh', refresh);
document.addEventListener('visibilitychange', () => (document.hidden ? stop() : listen()));
addEventListener('pagehide', stop);
addEventListener('pageshow', listen);
listen();
