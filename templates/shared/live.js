// Keeps the parts of a page that are marked `data-live` as the server has them: fetches the page anew when an event says so.
import { Idiomorph } from '/assets/vendor/idiomorph/idiomorph.esm.js';

const regions = () => [...document.querySelectorAll('[data-live]')];
let busy = false;
let again = false;

/** Open details stay open, what somebody is typing stays typed, and what is checked stays checked. */
const keep = {
  ignoreActiveValue: true,
  callbacks: {
    beforeAttributeUpdated: (name, node) =>
      !(node.tagName === 'DETAILS' && name === 'open') && !(node.tagName === 'INPUT' && name === 'checked'),
  },
};

/** An event names what has changed; a page says by `data-topics` what it shows. */
function concerns(changed) {
  const { topics } = document.documentElement.dataset;
  if (!topics || changed === '') return true;
  return topics.split(' ').some((topic) => changed.split(' ').includes(topic));
}

/** At most so often: what changes many times a second is fetched once. */
const pauseMs = 700;

async function refresh() {
  if (busy) return void (again = true);
  busy = true;
  try {
    const response = await fetch(document.documentElement.dataset.source ?? location.href, {
      headers: { accept: 'text/html' },
      cache: 'no-cache',
    });
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
    document.dispatchEvent(new CustomEvent('fetched', { detail: fresh }));
    for (const region of regions()) {
      const next = fresh.getElementById(region.id);
      if (next) Idiomorph.morph(region, next, keep);
    }
    document.dispatchEvent(new CustomEvent('live'));
  } catch {
    // Away for a moment: the event source comes back by itself, and tells.
  } finally {
    setTimeout(() => {
      busy = false;
      if (!again) return;
      again = false;
      void refresh();
    }, pauseMs);
  }
}

let source = null;
function listen() {
  if (source || document.hidden || regions().length === 0) return;
  source = new EventSource(document.documentElement.dataset.events);
  source.addEventListener('change', ({ data }) => concerns(data) && refresh());
  source.addEventListener('open', refresh);
}
function stop() {
  source?.close();
  source = null;
}
document.addEventListener('refresh', refresh);
document.addEventListener('visibilitychange', () => (document.hidden ? stop() : listen()));
addEventListener('pagehide', stop);
addEventListener('pageshow', listen);
listen();
