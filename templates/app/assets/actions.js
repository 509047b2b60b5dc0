// Cancel and retry.
document.addEventListener('click', async ({ target }) => {
  const { action, then } = target.dataset ?? {};
  if (!action) return;
  target.disabled = true;
  const said = document.querySelector('#action-problem');
  try {
    const response = await fetch(action, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    const answer = await response.json();
    if (response.ok && then) return void location.assign(then + answer.id);
    said.textContent = response.ok ? '' : answer.error;
  } catch {
    said.textContent = 'The app does not answer; try again in a moment.';
  }
  said.hidden = said.textContent === '';
  target.disabled = false;
});
