// @ts-check
// Values of a form whose session has ended. The form of the same step takes them after the same user's next launch.
import { first } from '../shared/dom.js';

/** @import { RunInput } from '../../../../src/app/processing/run-input.ts' */

/**
 * @typedef {object} Kept
 * @property {Record<string, string | number | boolean>} parameters
 * @property {RunInput | null} input
 */

const keptForMs = 24 * 3_600_000;
const user = first('.who', HTMLElement)?.textContent ?? '';
/** @param {string | undefined} step */
const keyOf = (step) => `form of ${step}`;

/**
 * @param {string | undefined} step
 * @param {Kept} values
 */
export function keep(step, values) {
  try {
    localStorage.setItem(keyOf(step), JSON.stringify({ user, until: Date.now() + keptForMs, values }));
  } catch {
    // A browser may refuse storage, such as in a frame of another site.
  }
}

/**
 * Returns the values that this user lost, once, or null.
 * @param {string | undefined} step
 * @returns {Kept | null}
 */
export function takeKept(step) {
  try {
    const kept = JSON.parse(localStorage.getItem(keyOf(step)) ?? 'null');
    localStorage.removeItem(keyOf(step));
    return kept?.user === user && kept.until > Date.now() ? kept.values : null;
  } catch {
    return null;
  }
}
