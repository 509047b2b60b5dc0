// @ts-check
// A line of a list of choices.

/**
 * @param {HTMLInputElement} input
 * @param {(string | Node)[]} parts set as text, never as markup
 * @param {string | null} [previewHref]
 */
export function choice(input, parts, previewHref) {
  const label = document.createElement('label');
  label.className = 'item-choice';
  label.append(input);
  if (previewHref) {
    const image = { src: previewHref, alt: '', width: 56, height: 40 };
    label.append(Object.assign(document.createElement('img'), image, { loading: /** @type {const} */ ('lazy') }));
  }
  label.append(...parts);
  return label;
}

/** @param {string} text */
export const smaller = (text) => Object.assign(document.createElement('small'), { textContent: text });
