/** @tus/server with its store of files, as its README starts it: `node tus.mjs FOLDER`. */
import { FileStore } from '@tus/file-store';
import { Server } from '@tus/server';

const server = new Server({ path: '/files', datastore: new FileStore({ directory: process.argv[2] }) });
const listening = server.listen({ host: '127.0.0.1', port: 0 }, () =>
  console.log(`peer ready http://127.0.0.1:${listening.address().port}`),
);
