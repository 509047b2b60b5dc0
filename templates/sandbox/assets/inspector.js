// The inspector without loading the page anew: a call into the pane, a part of the time into the drawing. All of it stands in the address.
const refresh = () => document.dispatchEvent(new Event('refresh'));

function go(changes) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes))
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, String(value));
  url.hash = '';
  history.replaceState(null, '', url);
  refresh();
}

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('[data-call]');
  if (link && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    go({ call: link.dataset.call });
    if (innerWidth < 1024)
      document.addEventListener('live', () => document.querySelector('#pane').scrollIntoView(), { once: true });
    return;
  }
  const drawing = document.querySelector('svg.timeline');
  const { zoom, pan, whole } = event.target.closest?.('[data-zoom], [data-pan], [data-whole]')?.dataset ?? {};
  if (whole !== undefined) {
    event.preventDefault();
    go({ from: null, to: null });
  } else if (drawing && (zoom || pan)) {
    const [from, span] = [Number(drawing.dataset.from), Number(drawing.dataset.span)];
    const size = zoom ? Math.max(200, span * zoom) : span;
    // Around the call that is chosen, if it is there to be seen.
    const chosen = drawing.querySelector('.chosen');
    const middle =
      zoom && chosen
        ? from + ((Number(chosen.getAttribute('x')) - Number(drawing.dataset.x)) / Number(drawing.dataset.width)) * span
        : from + span / 2;
    const start = middle - size / 2 + (pan ? span * pan : 0);
    go({ from: Math.round(start), to: Math.round(start + size) });
  }
});

// Up and down through the list.
document.querySelector('#calls').addEventListener('keydown', (event) => {
  const row = event.target.closest('tr');
  const next =
    event.key === 'ArrowDown' ? row?.nextElementSibling : event.key === 'ArrowUp' ? row?.previousElementSibling : null;
  const link = next?.querySelector('[data-call]');
  if (!link) return;
  event.preventDefault();
  link.focus();
  go({ call: link.dataset.call });
});

// A part of the time, by dragging over it.
const place = document.querySelector('#timeline');
let begun = null;
const timeAt = (drawing, clientX) => {
  const { left, width } = drawing.getBoundingClientRect();
  const units = ((clientX - left) / width) * drawing.viewBox.baseVal.width;
  const share = Math.max(0, Math.min(1, (units - Number(drawing.dataset.x)) / Number(drawing.dataset.width)));
  return {
    x: Number(drawing.dataset.x) + share * Number(drawing.dataset.width),
    ms: Number(drawing.dataset.from) + share * Number(drawing.dataset.span),
  };
};
place.addEventListener('pointerdown', (event) => {
  const drawing = event.target.closest('svg.timeline');
  if (drawing && event.button === 0 && event.pointerType === 'mouse')
    begun = { drawing, at: timeAt(drawing, event.clientX) };
});
place.addEventListener('pointermove', (event) => {
  if (!begun) return;
  const { drawing, at } = begun;
  const now = timeAt(drawing, event.clientX);
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
    begun.box.setAttribute(name, value);
});
addEventListener('pointerup', (event) => {
  const was = begun;
  begun = null;
  was?.box?.remove();
  if (!was?.isDrag) return;
  const swallow = (click) => click.stopPropagation();
  addEventListener('click', swallow, { capture: true, once: true });
  setTimeout(() => removeEventListener('click', swallow, { capture: true }));
  const [from, to] = [was.at.ms, timeAt(was.drawing, event.clientX).ms].sort((a, b) => a - b);
  go({ from: Math.round(from), to: Math.round(to) });
});
place.addEventListener('dragstart', (event) => event.preventDefault());

if (location.hash === '#controls') document.querySelector('#controls').open = true;

// A verdict's rule is opened where a link leads to it.
addEventListener('hashchange', () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.tagName === 'DETAILS') target.open = true;
});
