// Decides without leaving the page: the app beside it stays as it is.
const problem = document.querySelector('#frame-problem');
document.addEventListener('submit', async (event) => {
  if (event.target.dataset.here === undefined) return;
  event.preventDefault();
  const { submitter } = event;
  submitter.disabled = true;
  // Where it was decided the answer leads to the list of approvals.
  const response = await fetch(event.target.action, { method: 'POST', redirect: 'manual' }).catch(() => null);
  problem.hidden = response?.type === 'opaqueredirect';
  problem.textContent = problem.hidden
    ? ''
    : response === null
      ? 'The sandbox does not answer.'
      : `The decision came too late (${response.status}).`;
  submitter.disabled = false;
  document.dispatchEvent(new Event('refresh'));
});
