// Cancel and retry.
document.addEventListener('click', async ({ target }) => {
  const { action, then } = target.dataset ?? {};
  if (!action) return;
  target.disabled = true;
  const response = await fetch(action, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  const answer = await response.json();
  if (response.ok && then) return void location.assign(then + answer.id);
  target.disabled = false;
  if (!response.ok) alert(answer.error);
});
