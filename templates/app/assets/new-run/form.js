// @ts-check
// The form of a new run. A field hides the property of the form that has its name, such as dataset or querySelector.
import { byId } from '../shared/dom.js';

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */

const form = byId('new-run', HTMLFormElement);

/** @type {DOMStringMap} */
export const formData = Reflect.get(HTMLElement.prototype, 'dataset', form);

/**
 * Returns the elements of this kind that match.
 * @template {Element} T
 * @param {string} selector
 * @param {abstract new () => T} kind
 */
export const allIn = (selector, kind) =>
  [...Element.prototype.querySelectorAll.call(form, selector)].filter(
    /** @returns {one is T} */ (one) => one instanceof kind,
  );

/**
 * Returns the first element of this kind that matches, or null.
 * @template {Element} T
 * @param {string} selector
 * @param {abstract new () => T} kind
 */
export const firstIn = (selector, kind) => allIn(selector, kind)[0] ?? null;

/**
 * @param {string} type
 * @param {(event: Event) => void} listener
 */
export const listenTo = (type, listener) => EventTarget.prototype.addEventListener.call(form, type, listener);

/**
 * @param {unknown} one
 * @returns {one is Field}
 */
export const isField = (one) =>
  one instanceof HTMLInputElement || one instanceof HTMLSelectElement || one instanceof HTMLTextAreaElement;

/** Returns the fields of parameters. */
export const parameterFields = () => allIn('[data-parameter]', HTMLElement).filter(isField);

/**
 * Returns the field of a parameter, or null.
 * @param {string} name
 */
export const fieldOf = (name) => parameterFields().find((field) => field.name === name) ?? null;
