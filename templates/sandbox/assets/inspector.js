// @ts-check
// The inspector without a new page: a call opens in the pane, and a part of the time fills the drawing. The address holds both.
import { around, byId, first } from './shared/dom.js';

const refresh = () => document.dispatchEvent(new Event('refresh'));

/** @param {Record<string, string | number | null>} changes of the address; null removes a parameter */
function go(changes) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes))
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, String(value));
  url.hash = '';
  history.replaceState(null, '', url);
  // The filter keeps the chosen call and the part of the time.
  for (const field of document.querySelectorAll('#filter input[type=hidden]'))
    if (field instanceof HTMLInputElement) field.value = url.searchParams.get(field.name) ?? '';
  refresh();
}

/** @typedef {{ fromMs: number, toMs: number, x: number, width: number }} Segment part of the time axis, in milliseconds and in the drawing's units */

/**
 * The time that a drawing shows, in milliseconds, and the parts of its axis.
 * @param {SVGSVGElement} drawing
 */
function scaleOf({ dataset }) {
  /** @type {Segment[]} */
  const segments = JSON.parse(dataset['segments'] ?? '[]');
  return { from: Number(dataset['from']), span: Number(dataset['span']), segments };
}

/**
 * The moment at a place in the drawing's units.
 * @param {Segment[]} segments
 * @param {number} x
 */
function momentOf(segments, x) {
  const segment = segments.find((part) => x <= part.x + part.width) ?? segments.at(-1);
  if (!segment) return 0;
  const share = segment.width === 0 ? 0 : (x - segment.x) / segment.width;
  return segment.fromMs + Math.max(0, Math.min(1, share)) * (segment.toMs - segment.fromMs);
}

document.addEventListener('click', (event) => {
  const link = around(event, '[data-call]', Element);
  if (link && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    go({ call: callOf(link) });
    if (innerWidth < 1024)
      document.addEventListener('live', () => document.querySelector('#pane')?.scrollIntoView(), { once: true });
    return;
  }
  const drawing = first('svg.timeline', SVGSVGElement);
  const { zoom, pan, whole } = around(event, '[data-zoom], [data-pan], [data-whole]', HTMLElement)?.dataset ?? {};
  if (whole !== undefined) {
    event.preventDefault();
    go({ from: null, to: null });
  } else if (drawing && (zoom || pan)) {
    const { from, span, segments } = scaleOf(drawing);
    const size = zoom ? Math.max(200, span * Number(zoom)) : span;
    // Around the chosen call, if the drawing shows it.
    const chosen = drawing.querySelector('.chosen');
    const [begin, end] = [segments[0], segments.at(-1)];
    const centre = begin && end ? (begin.x + end.x + end.width) / 2 : 0;
    // Around the middle of the drawing, and not of the time, which may be a pause.
    const middle = pan ? from + span / 2 : momentOf(segments, chosen ? Number(chosen.getAttribute('x')) : centre);
    const start = middle - size / 2 + (pan ? span * Number(pan) : 0);
    go({ from: Math.round(start), to: Math.round(start + size) });
  }
});

/** @param {Element} link */
const callOf = (link) => link.getAttribute('data-call') ?? '';

// Up and down through the list.
byId('calls', HTMLElement).addEventListener('keydown', (event) => {
  const row = around(event, 'tr', HTMLTableRowElement);
  const next =
    event.key === 'ArrowDown' ? row?.nextElementSibling : event.key === 'ArrowUp' ? row?.previousElementSibling : null;
  const link = next ? first('[data-call]', HTMLElement, next) : null;
  if (!link) return;
  event.preventDefault();
  link.focus();
  go({ call: callOf(link) });
});

// A part of the time, by dragging over it.
const place = byId('timeline', HTMLElement);
/** @typedef {{ x: number, ms: number }} Moment place in the drawing, and time */
/** @type {{ drawing: SVGSVGElement, at: Moment, isDrag: boolean, box: SVGRectElement | null } | null} */
let begun = null;
/**
 * @param {SVGSVGElement} drawing
 * @param {number} clientX
 * @returns {Moment}
 */
function momentAt(drawing, clientX) {
  const { left, width } = drawing.getBoundingClientRect();
  const { segments } = scaleOf(drawing);
  const units = ((clientX - left) / width) * drawing.viewBox.baseVal.width;
  const [start, end] = [segments[0]?.x ?? 0, (segments.at(-1)?.x ?? 0) + (segments.at(-1)?.width ?? 0)];
  const x = Math.max(start, Math.min(end, units));
  return { x, ms: momentOf(segments, x) };
}
place.addEventListener('pointerdown', (event) => {
  const drawing = around(event, 'svg.timeline', SVGSVGElement);
  if (drawing && event.button === 0 && event.pointerType === 'mouse')
    begun = { drawing, at: momentAt(drawing, event.clientX), isDrag: false, box: null };
});
place.addEventListener('pointermove', (event) => {
  if (!begun) return;
  const { drawing, at } = begun;
  const now = momentAt(drawing, event.clientX);
  if (Math.abs(now.x - at.x) < 6) return;
  event.preventDefault();
  begun.isDrag = true;
  begun.box ??= drawing.appendChild(document.createElementNS('http://www.w3.org/2000/svg', 'rect'));
  begun.box.setAttribute('class', 'select');
  for (const [name, value] of Object.entries({
    x: Math.min(at.x, now.x),
    y: 0,
    width: Math.abs(now.x - at.x),
    height: drawing.viewBox.baseVal.height,
  }))
    begun.box.setAttribute(name, String(value));
});
addEventListener('pointerup', (event) => {
  const was = begun;
  begun = null;
  was?.box?.remove();
  if (!was?.isDrag) return;
  const swallow = (/** @type {Event} */ click) => click.stopPropagation();
  addEventListener('click', swallow, { capture: true, once: true });
  setTimeout(() => removeEventListener('click', swallow, { capture: true }));
  const [one, other] = [was.at.ms, momentAt(was.drawing, event.clientX).ms];
  go({ from: Math.round(Math.min(one, other)), to: Math.round(Math.max(one, other)) });
});
place.addEventListener('dragstart', (event) => event.preventDefault());

const controls = first('#controls', HTMLDetailsElement);
if (controls && location.hash === '#controls') controls.open = true;

// A link to a rule of the verdict opens it.
addEventListener('hashchange', () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
});
