// All of a page, checked or not.
document.addEventListener('change', ({ target }) => {
  if (target.dataset.checkAll === undefined) return;
  for (const box of document.querySelectorAll('input[form="bulk"]')) box.checked = target.checked;
});
