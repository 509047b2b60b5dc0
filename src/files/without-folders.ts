/** A library's message without the folders of this machine: `/srv/work/7/scene.tif: bad header` becomes `scene.tif: bad header`. Addresses stay. */
export const withoutFolders = (message: string): string =>
  message.replace(/(?<![\w.:/])\/(?:[^\s/'"`:;,()<>]+\/)+(?=[^\s/])/g, '');
