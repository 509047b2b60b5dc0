import { useRoute } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { nextTick, onMounted, watch } from 'vue';

/** Draws the diagrams of the page. */
async function draw() {
  if (!document.querySelector('pre.mermaid')) return;
  const { default: mermaid } = await import('mermaid');
  const theme = document.documentElement.classList.contains('dark') ? 'dark' : 'default';
  mermaid.initialize({ startOnLoad: false, theme });
  await mermaid.run({ querySelector: 'pre.mermaid' });
}

export default {
  extends: DefaultTheme,
  setup() {
    const route = useRoute();
    onMounted(draw);
    watch(
      () => route.path,
      () => nextTick(draw),
    );
  },
};
