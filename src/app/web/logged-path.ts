/** Words of the app's own addresses. */
const word = /^[a-z][a-z.-]{0,23}$/;
/** Behind these an id of the app's own follows. */
const beforeIds = new Set(['launches', 'runs', 'new']);
/** Ids as `run-intake.ts` and `begin-launch.ts` make them: 16 random bytes in base64url. */
const id = /^[A-Za-z0-9_-]{22}$/;

/**
 * Makes an address safe for a log: keeps only its path, and there only the words and ids that the app itself made. Anything else
 * could be a token in the wrong place.
 */
export function loggedPath(url: string): string {
  const segments = (url.split(/[?#]/)[0] ?? '').split('/');
  return segments
    .map((segment, i) =>
      segment === '' || word.test(segment) || (beforeIds.has(segments[i - 1] ?? '') && id.test(segment))
        ? segment
        : ':redacted',
    )
    .join('/');
}
