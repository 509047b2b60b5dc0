// @ts-check
// Values of a form whose session has ended. The form of the same step takes them after the same user's next launch.

/** @import { RunInput } from '../../../../src/app/processing/run-input.ts' */

/**
 * @typedef {object} Kept
 * @property {Record<string, string | number | boolean>} parameters
 * @property {RunInput | null} input
 */

const prefix = 'form of ';
const keptForMs = 24 * 3_600_000;

/** @param {DOMStringMap} form */
const keyOf = ({ step, user }) => `${prefix}${step} by ${user}`;

/**
 * Keeps the values for a day, if the form names its user.
 * @param {DOMStringMap} form
 * @param {Kept} values
 */
export function keep(form, values) {
  if (!form['user']) return;
  try {
    localStorage.setItem(keyOf(form), JSON.stringify({ until: Date.now() + keptForMs, values }));
  } catch {
    // A browser may refuse storage, such as in a frame of another site.
  }
}

/**
 * Returns the values that this user lost, once, or null. Removes all values that are too old.
 * @param {DOMStringMap} form
 * @returns {Kept | null}
 */
export function takeKept(form) {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
    for (const key of keys)
      if (!(JSON.parse(localStorage.getItem(key) ?? '{}').until > Date.now())) localStorage.removeItem(key);
    const kept = JSON.parse(localStorage.getItem(keyOf(form)) ?? 'null');
    localStorage.removeItem(keyOf(form));
    return kept?.values ?? null;
  } catch {
    return null;
  }
}
