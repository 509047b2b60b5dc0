// @ts-check
// Sends the launch's form by itself; its button is for browsers without scripts.
import { byId, first } from './shared/dom.js';

const form = byId('launch', HTMLFormElement);
const button = first('[data-launch]', HTMLElement, form);
if (button) button.hidden = true;
form.submit();
