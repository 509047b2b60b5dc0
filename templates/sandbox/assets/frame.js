// Decides without leaving the page: the app beside it stays as it is.
document.addEventListener('submit', async (event) => {
  if (event.target.dataset.here === undefined) return;
  event.preventDefault();
  event.submitter.disabled = true;
  await fetch(event.target.action, { method: 'POST', redirect: 'manual' });
  document.dispatchEvent(new Event('refresh'));
});
