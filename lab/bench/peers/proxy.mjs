/** A proxy of nothing but Node's own pipes: `node proxy.mjs UPSTREAM`. */
import { createServer, request } from 'node:http';

const { hostname, port } = new URL(process.argv[2]);
const server = createServer((req, res) => {
  const out = request(
    { hostname, port, method: req.method, path: req.url, headers: req.headers, agent: false },
    (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.pipe(res);
    },
  );
  req.pipe(out);
});
server.listen(0, '127.0.0.1', () => console.log(`peer ready http://127.0.0.1:${server.address().port}`));
