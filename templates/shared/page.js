// @ts-check
// Parts of every page: times in the reader's zone, buttons that copy, and questions before what cannot be undone.
import { all, around, first } from './dom.js';

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hour12: false,
});
const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: 'short' });
/** @param {Date} date */
const zoneOf = (date) => zone.formatToParts(date).find(({ type }) => type === 'timeZoneName')?.value ?? '';

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });
/** @type {[unit: Intl.RelativeTimeFormatUnit, seconds: number][]} */
const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];
/**
 * A time as its distance from now, as in `2 min. ago`.
 * @param {Date} date
 */
function agoOf(date) {
  const seconds = (date.getTime() - Date.now()) / 1_000;
  const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
  return relative.format(Math.round(seconds / size), unit);
}

/** @param {Document} root */
function localize(root) {
  // Elements of a document that was parsed belong to this window, too.
  for (const element of all('time[datetime]', HTMLTimeElement, root)) {
    const date = new Date(element.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    const words = `${full.format(date)} ${zoneOf(date)}`;
    const { clock: asClock, ago: asAgo } = element.dataset;
    element.textContent = asClock !== undefined ? clock.format(date) : asAgo !== undefined ? agoOf(date) : words;
    element.title = asAgo === undefined ? element.dateTime : words;
  }
}
function retitle() {
  const title = first('[data-title]', HTMLElement)?.dataset['title'];
  if (title) document.title = title;
}
// Before it replaces the page's own: nothing flickers.
document.addEventListener('fetched', (event) => {
  if (event instanceof CustomEvent && event.detail instanceof Document) localize(event.detail);
});
document.addEventListener('live', retitle);
localize(document);
retitle();

/**
 * Replaces `$API_KEY` in a copied text by the key that the API page has made in this tab. The page keeps its text.
 * @param {string} text
 */
const withKey = (text) => text.replace('$API_KEY', sessionStorage.getItem('api-key') ?? '$API_KEY');

document.addEventListener('click', async (event) => {
  const button = around(event, '[data-copy]', HTMLElement);
  if (!button) return;
  const { copy, copyFrom } = button.dataset;
  const text = copy || (copyFrom ? document.querySelector(copyFrom)?.textContent : null) || '';
  try {
    await navigator.clipboard.writeText(withKey(text));
    say(button, 'Copied');
  } catch {
    say(button, 'Cannot copy here');
  }
});
/**
 * Original labels of buttons that show a message for a moment.
 * @type {WeakMap<HTMLElement, string | null>}
 */
const wordsOf = new WeakMap();
/**
 * @param {HTMLElement} button
 * @param {string} word
 */
function say(button, word) {
  const before = wordsOf.get(button) ?? button.textContent;
  wordsOf.set(button, before);
  button.textContent = word;
  setTimeout(() => {
    button.textContent = before;
    wordsOf.delete(button);
  }, 1_500);
}

document.addEventListener('submit', (event) => {
  const form = event.target instanceof HTMLElement ? event.target : null;
  const question = event.submitter?.dataset['confirm'] ?? form?.dataset['confirm'];
  if (question && !confirm(question)) event.preventDefault();
});
