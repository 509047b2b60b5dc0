// @ts-check
// Uploads: small files in one request, large ones in chunks that continue after an interruption. And downloads by a signed link.
import { around, byId, messageOf } from './shared/dom.js';

/** @typedef {{ error: string, details?: { path: string, message: string }[] }} Refusal */

const api = '/browser/public/file';
const directBytes = 16_000_000;
const chunkBytes = 8 * 1024 * 1024;
const form = byId('upload', HTMLFormElement);
const list = byId('uploads', HTMLElement);
const drop = byId('drop', HTMLElement);

/** @param {string} name */
const inputOf = (name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name));
/** @param {Refusal['details']} details */
const inWords = (details = []) => details.map(({ path, message }) => `${path} ${message}`);

/**
 * Posts a body. Rejects with the reason in words.
 * @param {string} url
 * @param {FormData | URLSearchParams} body
 * @param {(bytes: number) => void} onProgress
 * @returns {Promise<{ uploadId: string, key: string }>}
 */
function send(url, body, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', url);
    request.responseType = 'json';
    request.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded));
    request.addEventListener('load', () => {
      if (request.status < 300) return resolve(request.response);
      /** @type {Partial<Refusal> | null} */
      const refusal = request.response;
      reject(new Error([refusal?.error ?? request.status, ...inWords(refusal?.details)].join('; ')));
    });
    request.addEventListener('error', () =>
      reject(new Error('the connection was lost; choose the file again to continue')),
    );
    request.send(body);
  });
}

/** @param {Record<string, string | Blob>} values */
function formOf(values) {
  const data = new FormData();
  for (const [name, value] of Object.entries(values)) data.append(name, value);
  return data;
}

/** Facts about a file, from the fields of the form. */
function facts() {
  const date = inputOf('acquisitionDate').value;
  return { sourceType: inputOf('sourceType').value, ...(date ? { acquisitionDate: `${date}T00:00:00Z` } : {}) };
}

/**
 * @param {File} file
 * @param {(bytes: number) => void} onProgress
 */
async function upload(file, onProgress) {
  if (file.size <= directBytes) {
    const { sourceType, ...more } = facts();
    await send(`${api}/upload?sourceType=${sourceType}`, formOf({ ...more, file }), onProgress);
    return;
  }
  // The browser remembers the upload until it is complete.
  const memory = `upload:${file.name}:${file.size}:${file.lastModified}`;
  /** @type {{ uploadId: string, key: string, parts: number }} */
  const known = JSON.parse(localStorage.getItem(memory) ?? 'null') ?? {
    ...(await send(`${api}/generateUploadId`, new URLSearchParams({ fileName: file.name }), () => {})),
    parts: 0,
  };
  const { uploadId, key } = known;
  try {
    for (let n = known.parts; n * chunkBytes < file.size; n++) {
      await send(
        `${api}/uploadChunk`,
        formOf({ uploadId, key, partNumber: String(n + 1), file: file.slice(n * chunkBytes, (n + 1) * chunkBytes) }),
        (sent) => onProgress(n * chunkBytes + sent),
      );
      localStorage.setItem(memory, JSON.stringify({ uploadId, key, parts: n + 1 }));
    }
    const response = await fetch(`${api}/completeUpload`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ uploadId, key, fileSize: file.size, ...facts() }),
    });
    /** @type {Refusal} */
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    localStorage.removeItem(memory);
  } catch (error) {
    if (/not found/i.test(messageOf(error))) localStorage.removeItem(memory); // the session is gone: the next try begins again
    throw error;
  }
}

/** @param {File[]} files */
async function take(files) {
  for (const file of files) {
    const line = document.createElement('li');
    const bar = Object.assign(document.createElement('progress'), { max: Math.max(1, file.size), value: 0 });
    bar.setAttribute('aria-label', `Upload of ${file.name}`);
    const text = document.createElement('span');
    text.textContent = file.name;
    line.append(text, bar);
    list.append(line);
    try {
      await upload(file, (bytes) => {
        bar.value = Math.min(bytes, file.size);
        text.textContent = `${file.name}: ${(bar.value / 1e6).toFixed(1)} of ${(file.size / 1e6).toFixed(1)} MB`;
      });
      text.textContent = `${file.name}: uploaded; its status is below`;
    } catch (error) {
      text.textContent = `${file.name}: ${messageOf(error)}`;
      text.className = 'problem';
    }
    bar.remove();
  }
}

/** The server refused a file for its name: a scene has no such file. */
class NameRefused extends Error {}

/**
 * Asks the server for something about the folder of a scene.
 * @param {string} url
 * @param {RequestInit} options
 * @returns {Promise<any>}
 */
async function ask(url, options) {
  const response = await fetch(url, options);
  const answer = await response.json();
  if (response.ok) return answer;
  /** @type {Refusal} */
  const { error, details = [] } = answer;
  const message = inWords(details).join('; ') || error;
  throw details[0]?.path === 'name' ? new NameRefused(message) : new Error(message);
}

/**
 * Sends the files of a scene's folder one by one, and makes one item of them. Subfolders and files of other kinds stay out.
 * @param {File[]} files
 */
async function takeFolder(files) {
  const top = files[0]?.webkitRelativePath.split('/')[0] ?? '';
  const own = files.filter(
    (file) => file.webkitRelativePath.split('/').length === 2 && /\.(tiff?|jp2|img|vrt|xml|txt|json)$/i.test(file.name),
  );
  const line = list.appendChild(document.createElement('li'));
  const text = line.appendChild(document.createElement('span'));
  /** @param {string} words */
  const say = (words, isBad = false) => {
    text.textContent = `${top}: ${words}`;
    text.className = isBad ? 'problem' : '';
  };
  try {
    if (!own.some((file) => /\.(tiff?|jp2|img|vrt)$/i.test(file.name)))
      throw new Error('this folder has no raster (.tif, .jp2, .img)');
    /** @type {{ id: string }} */
    const { id } = await ask('/files/scenes', { method: 'POST', body: new URLSearchParams({ name: top }) });
    for (const [i, file] of own.entries()) {
      say(`file ${i + 1} of ${own.length}, ${file.name}`);
      await ask(`/files/scenes/${id}/${encodeURIComponent(file.name)}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/octet-stream' },
        body: file,
      }).catch((error) => {
        if (!(error instanceof NameRefused)) throw error;
      });
    }
    say('reading its bands');
    /** @type {{ imported: number, refusals: { where: string, reason: string }[] }} */
    const { imported, refusals } = await ask(`/files/scenes/${id}/import`, { method: 'POST' });
    say(imported === 1 ? 'added to the catalog as one item. ' : `added to the catalog as ${imported} items. `);
    line.append(Object.assign(document.createElement('a'), { href: '/catalog', textContent: 'View' }));
    if (refusals.length > 0)
      line.append(`; left out: ${refusals.map(({ where, reason }) => `${where} ${reason}`).join(', ')}`);
  } catch (error) {
    say(messageOf(error), true);
  }
}

/**
 * Returns the chosen files, and empties the field so that the same files can be chosen again.
 * @param {HTMLInputElement} field
 */
function chosenIn(field) {
  const chosen = [...(field.files ?? [])];
  field.value = '';
  return chosen;
}
inputOf('folder').addEventListener('change', async () => {
  const chosen = chosenIn(inputOf('folder'));
  if (chosen.length > 0) await takeFolder(chosen);
});
form.addEventListener('submit', (event) => event.preventDefault());
inputOf('file').addEventListener('change', () => take(chosenIn(inputOf('file'))));
/** @param {DragEvent} event */
const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files') ?? false;
// Files may be dropped anywhere on the page. The browser would open them.
addEventListener('dragover', (event) => hasFiles(event) && event.preventDefault());
addEventListener('drop', (event) => {
  if (event.defaultPrevented || !hasFiles(event)) return;
  event.preventDefault();
  byId('upload-place', HTMLDetailsElement).open = true;
  void take([...(event.dataTransfer?.files ?? [])]);
});
for (const kind of /** @type {const} */ (['dragover', 'dragleave', 'drop'])) {
  drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle('over', kind === 'dragover');
    if (kind === 'drop') void take([...(event.dataTransfer?.files ?? [])]);
  });
}

document.addEventListener('click', async (event) => {
  const id = around(event, '[data-download]', HTMLElement)?.dataset['download'];
  if (!id) return;
  try {
    const response = await fetch(`${api}/download/url?fileId=${encodeURIComponent(id)}`);
    if (response.ok) location.assign(await response.text());
    else alert(/** @type {Refusal} */ (await response.json()).error);
  } catch {
    alert('The sandbox cannot be reached. Try again in a moment.');
  }
});
