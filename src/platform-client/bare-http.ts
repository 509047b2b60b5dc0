import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Axios } from 'axios';

/** HTTP for addresses that get neither key nor token. Returns the body as a stream, and follows no redirect. */
export const bareHttp = new Axios({
  adapter: 'http',
  // Node's own agents may ask a proxy for this machine's own addresses (NODE_USE_ENV_PROXY).
  httpAgent: new HttpAgent(),
  httpsAgent: new HttpsAgent(),
  // The link's host may be another: an answer that leads elsewhere is told, not followed.
  maxRedirects: 0,
  responseType: 'stream',
  decompress: false,
  validateStatus: () => true,
});
