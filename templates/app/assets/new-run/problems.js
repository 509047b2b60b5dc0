// @ts-check
// Messages below the fields of the form.
import { byId, messageOf } from '../shared/dom.js';
import { Refusal } from './api.js';
import { allIn, fieldOf } from './form.js';

/** @import { Field } from './form.js' */

/**
 * A problem of a field, of the input, or of the form.
 * @typedef {object} Problem
 * @property {string} message such as `must be at most 60`
 * @property {Field | null} [field]
 * @property {boolean} [isOfInput]
 */

/**
 * Returns the problems of a failed call.
 * @param {unknown} error
 * @returns {Problem[]}
 */
export function problemsOf(error) {
  if (!(error instanceof Refusal) || error.details.length === 0) return [{ message: messageOf(error) }];
  const isOfParameters = error.code === 'invalid_parameters';
  return error.details.map(({ path, message }) => ({
    field: fieldOf(isOfParameters ? path : (/^parameters\.(.+)$/.exec(path)?.[1] ?? '')),
    isOfInput: !isOfParameters && /^input\b/.test(path),
    message,
  }));
}

/**
 * Shows a problem as a sentence: `must be at most 60` at the field `Altitude of the light`.
 * @param {Problem} problem
 */
export function show({ field = null, isOfInput = false, message }) {
  const place = byId(field ? `problem-${field.name}` : isOfInput ? 'problem-of-input' : 'problem-of-form', HTMLElement);
  const subject = field?.closest('label')?.firstChild?.textContent?.trim();
  const sentence = `${subject ? `${subject} ` : ''}${message}`;
  const text = `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
  place.textContent = place.hidden ? text : `${place.textContent} ${text}`;
  place.hidden = false;
  field?.setAttribute('aria-invalid', 'true');
}

export function clear() {
  for (const place of allIn('.problem', HTMLElement)) place.hidden = true;
  for (const field of allIn('[aria-invalid]', Element)) field.removeAttribute('aria-invalid');
}
