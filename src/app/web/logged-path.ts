/** Words of the app's own addresses. */
const word = /^[a-z][a-z.-]{0,23}$/;
/** Behind these an id of the app's own follows. */
const beforeIds = new Set(['launches', 'runs', 'new']);
const id = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * An address as a log may hold it: its path, and of that the words and ids that the app itself has made. Whatever else somebody
 * asked for could be a token that was put in the wrong place.
 */
export function loggedPath(url: string): string {
  const segments = (url.split(/[?#]/)[0] ?? '').split('/');
  return segments
    .map((one, i) =>
      one === '' || word.test(one) || (beforeIds.has(segments[i - 1] ?? '') && id.test(one)) ? one : ':redacted',
    )
    .join('/');
}
