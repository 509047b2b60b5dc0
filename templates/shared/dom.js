// @ts-check
// Elements of a page, by their kinds.

/**
 * Returns the element with this id. Throws if the page has none of this kind.
 * @template {Element} T
 * @param {string} id
 * @param {abstract new () => T} kind
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} with the id ${id}`);
  return found;
}

/**
 * Returns the first element that matches, or null if there is none of this kind.
 * @template {Element} T
 * @param {string} selector
 * @param {abstract new () => T} kind
 * @param {ParentNode} [root]
 */
export function first(selector, kind, root = document) {
  const found = root.querySelector(selector);
  return found instanceof kind ? found : null;
}

/**
 * Returns all elements of this kind that match.
 * @template {Element} T
 * @param {string} selector
 * @param {abstract new () => T} kind
 * @param {ParentNode} [root]
 */
export const all = (selector, kind, root = document) =>
  [...root.querySelectorAll(selector)].filter(/** @returns {one is T} */ (one) => one instanceof kind);

/**
 * Returns the element of this kind that an event began in, or the nearest around it that matches.
 * @template {Element} T
 * @param {Event} event
 * @param {string} selector
 * @param {abstract new () => T} kind
 */
export function around(event, selector, kind) {
  const found = event.target instanceof Element ? event.target.closest(selector) : null;
  return found instanceof kind ? found : null;
}

/**
 * Returns the JSON that the server has put into a data block.
 * @param {string} id
 * @returns {any}
 */
export const dataOf = (id) => JSON.parse(byId(id, HTMLScriptElement).textContent);

/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));
