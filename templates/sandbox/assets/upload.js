// Uploads: small files in one request, large ones in chunks that go on after an interruption. And downloads by a signed link.
const api = '/browser/public/file';
const directBytes = 16_000_000;
const chunkBytes = 8 * 1024 * 1024;
const form = document.querySelector('#upload');
const list = document.querySelector('#uploads');
const drop = document.querySelector('#drop');

function send(url, body, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', url);
    request.responseType = 'json';
    request.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded));
    request.addEventListener('load', () =>
      request.status < 300
        ? resolve(request.response)
        : reject(
            new Error(
              [
                request.response?.error ?? request.status,
                ...(request.response?.details ?? []).map(({ path, message }) => `${path} ${message}`),
              ].join('; '),
            ),
          ),
    );
    request.addEventListener('error', () =>
      reject(new Error('the connection was lost; choose the file again to continue')),
    );
    request.send(body);
  });
}

const formOf = (values) => {
  const data = new FormData();
  for (const [name, value] of Object.entries(values)) data.append(name, value);
  return data;
};

function facts() {
  const { sourceType, acquisitionDate } = form.elements;
  return {
    sourceType: sourceType.value,
    ...(acquisitionDate.value ? { acquisitionDate: `${acquisitionDate.value}T00:00:00Z` } : {}),
  };
}

async function upload(file, onProgress) {
  if (file.size <= directBytes) {
    const { sourceType, ...more } = facts();
    return send(`${api}/upload?sourceType=${sourceType}`, formOf({ ...more, file }), onProgress);
  }
  // Which upload it was stays in this browser until it is complete.
  const memory = `upload:${file.name}:${file.size}:${file.lastModified}`;
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
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    localStorage.removeItem(memory);
    return answer;
  } catch (error) {
    if (/not found/i.test(error.message)) localStorage.removeItem(memory); // the session is gone: the next try begins anew
    throw error;
  }
}

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
      text.textContent = `${file.name}: ${error.message}`;
      text.className = 'problem';
    }
    bar.remove();
  }
}

/** The folder of a scene: its files one by one, then one item of them. Subfolders are left out, as are files that no scene has. */
async function takeFolder(files) {
  const [top] = files[0].webkitRelativePath.split('/');
  const own = files.filter(
    (file) => file.webkitRelativePath.split('/').length === 2 && /\.(tiff?|jp2|img|vrt|xml|txt|json)$/i.test(file.name),
  );
  const line = list.appendChild(document.createElement('li'));
  const text = line.appendChild(document.createElement('span'));
  const say = (words, isBad = false) => {
    text.textContent = `${top}: ${words}`;
    text.className = isBad ? 'problem' : '';
  };
  const ask = async (url, options) => {
    const response = await fetch(url, options);
    const answer = await response.json();
    if (!response.ok)
      throw Object.assign(
        new Error((answer.details ?? []).map(({ path, message }) => `${path} ${message}`).join('; ') || answer.error),
        { isOfName: answer.details?.[0]?.path === 'name' },
      );
    return answer;
  };
  try {
    if (!own.some((file) => /\.(tiff?|jp2|img|vrt)$/i.test(file.name)))
      throw new Error('this folder has no raster (.tif, .jp2, .img)');
    const { id } = await ask('/files/scenes', { method: 'POST', body: new URLSearchParams({ name: top }) });
    for (const [i, file] of own.entries()) {
      say(`file ${i + 1} of ${own.length}, ${file.name}`);
      await ask(`/files/scenes/${id}/${encodeURIComponent(file.name)}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/octet-stream' },
        body: file,
      }).catch((error) => {
        if (!error.isOfName) throw error;
      });
    }
    say('reading its bands');
    const { imported, refusals } = await ask(`/files/scenes/${id}/import`, { method: 'POST' });
    say(imported === 1 ? 'is one item of the catalog: ' : `${imported} items of the catalog: `);
    line.append(Object.assign(document.createElement('a'), { href: '/catalog', textContent: 'see it' }));
    if (refusals.length > 0)
      line.append(`; left out: ${refusals.map(({ where, reason }) => `${where} ${reason}`).join(', ')}`);
  } catch (error) {
    say(error.message, true);
  }
}
form.elements.folder.addEventListener('change', async ({ target }) => {
  const chosen = [...target.files];
  target.value = '';
  if (chosen.length > 0) await takeFolder(chosen);
});

form.addEventListener('submit', (event) => event.preventDefault());
form.elements.file.addEventListener('change', async ({ target }) => {
  const chosen = [...target.files];
  target.value = '';
  await take(chosen);
});
for (const [name, isOver] of [
  ['dragover', true],
  ['dragleave', false],
  ['drop', false],
]) {
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.toggle('over', isOver);
    if (name === 'drop') void take([...event.dataTransfer.files]);
  });
}

document.addEventListener('click', async ({ target }) => {
  const id = target.dataset?.download;
  if (!id) return;
  try {
    const response = await fetch(`${api}/download/url?fileId=${encodeURIComponent(id)}`);
    if (response.ok) location.assign(await response.text());
    else alert((await response.json()).error);
  } catch {
    alert('The sandbox cannot be reached. Try again in a moment.');
  }
});
