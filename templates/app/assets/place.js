// @ts-check
// Sends the user's place in the app to the platform's page that frames it, so that a reload of that page leads back here.
function send() {
  if (window.parent !== window) window.parent.postMessage({ place: location.pathname + location.search }, '*');
}
send();
document.addEventListener('moved', send);
// A page that the browser has kept does not run this again.
window.addEventListener('pageshow', ({ persisted }) => persisted && send());
