// Starts a job; the list keeps itself up to date.
const form = document.querySelector('#run');
const problem = form.querySelector('.problem');
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const { modelId, fileId, geometry } = form.elements;
  const button = form.querySelector('[type="submit"]');
  button.disabled = true;
  try {
    await begin(modelId, fileId, geometry);
  } catch {
    problem.hidden = false;
    problem.textContent = 'The sandbox cannot be reached. Try again in a moment.';
  } finally {
    button.disabled = false;
  }
});

async function begin(modelId, fileId, geometry) {
  const response = await fetch('/browser/public/inference/run', {
    method: 'POST',
    body: new URLSearchParams({
      modelId: modelId.value,
      fileId: fileId.value,
      ...(geometry.value.trim() ? { geometry: geometry.value.trim() } : {}),
    }),
  });
  const answer = await response.json();
  problem.hidden = response.ok;
  problem.textContent = response.ok
    ? ''
    : [answer.error, ...(answer.details ?? []).map(({ path, message }) => `${path} ${message}`)].join('; ');
}
