// What every page has: times in the reader's zone, buttons that copy, and questions before what cannot be undone.
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hour12: false,
});
const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: 'short' });
const zoneOf = (date) => zone.formatToParts(date).find(({ type }) => type === 'timeZoneName')?.value ?? '';

function localize(root) {
  for (const element of root.querySelectorAll('time[datetime]')) {
    const date = new Date(element.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    element.textContent =
      element.dataset.clock === undefined ? `${full.format(date)} ${zoneOf(date)}` : clock.format(date);
    element.title = element.dateTime;
  }
}
function retitle() {
  const title = document.querySelector('[data-title]')?.dataset.title;
  if (title) document.title = title;
}
// Before it takes the place of what is there: nothing flickers.
document.addEventListener('fetched', ({ detail }) => localize(detail));
document.addEventListener('live', retitle);
localize(document);
retitle();

/** The key that the API page has made in this tab, in the place of `$API_KEY`: in the copy, not on the page. */
const withKey = (text) => text.replace('$API_KEY', sessionStorage.getItem('api-key') ?? '$API_KEY');

document.addEventListener('click', async (event) => {
  const button = event.target.closest?.('[data-copy]');
  if (!button) return;
  const text = button.dataset.copy || document.querySelector(button.dataset.copyFrom)?.textContent || '';
  try {
    await navigator.clipboard.writeText(withKey(text));
    say(button, 'Copied');
  } catch {
    say(button, 'Cannot copy here');
  }
});
/** Original labels of buttons that show a message for a moment. */
const wordsOf = new WeakMap();
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
  const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});
