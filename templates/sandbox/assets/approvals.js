// @ts-check
// Checks all boxes of a page, or none.
import { all, around } from './shared/dom.js';

document.addEventListener('change', (event) => {
  const every = around(event, '[data-check-all]', HTMLInputElement);
  if (every) for (const box of all('input[form="bulk"]', HTMLInputElement)) box.checked = every.checked;
});
