// Sends the launch's form by itself; its button is for browsers without scripts.
const form = document.querySelector('#launch');
form.querySelector('[data-launch]').hidden = true;
form.submit();
