import { isIP } from 'node:net';

/** True for a name, in the form of a URL's `hostname`, that leads to this machine wherever it is looked up. */
export function isLoopbackName(name: string): boolean {
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '[::1]' ||
    (isIP(name) === 4 && name.startsWith('127.'))
  );
}

/** True for an origin that can stand in a Content-Security-Policy as it is: http or https, a host of letters, digits, - and _, a port. */
export function isPlainOrigin(origin: string): boolean {
  return /^https?:\/\/[a-z0-9_-]+(\.[a-z0-9_-]+)*(:\d{1,5})?$/.test(origin);
}
