// A click on a call in the timeline, or in a violation, opens it in the list.
function open(id) {
  const call = document.getElementById(`call-${id}`);
  if (!call) return;
  call.open = true;
  call.scrollIntoView({ block: 'center' });
  call.querySelector('summary').focus();
}
document.addEventListener('click', (event) => {
  const drawn = event.target.closest?.('[data-call]');
  const linked = /^#call-(\d+)$/.exec(event.target.getAttribute?.('href') ?? '')?.[1];
  if (linked) event.preventDefault();
  if (drawn || linked) open(drawn?.dataset.call ?? linked);
});
