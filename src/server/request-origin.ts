import { isIP } from 'node:net';

/** Headers by which a proxy, a cache or a tunnel shows that a request was somebody else's first. A proxy that adds none cannot be told. */
const forwardingHeaders = new RegExp(
  `^(${[
    'forwarded(-.*)?|via|x-(original-)?forwarded(-.*)?|x[_-]forwarded[_-].*|x-forward-.*|max-forwards|proxy-.*',
    '.*-real-ip|x-real-port|(.*-)?client-ip|.*-connecting-ip(v6)?|x-originating-ip|remote-addr|x-remote-(ip|addr)',
    'x-original-(host|uri|url)|x-rewrite-url|x-cluster-.*|x-proxyuser-ip|cdn-loop',
    // Products and services.
    'akamai-.*|cf-.*|cloudfront-.*|fastly-.*|fly-.*|tailscale-.*|x-amz-cf-id|x-amzn-trace-id|x-appengine-.*|x-arr-.*',
    'x-azure-(clientip|socketip|ref|fdid)|x-bluecoat-via|x-cloud-trace-context|x-envoy-.*|x-kong-.*|x-nf-.*',
    'x-nginx-proxy|x-sucuri-.*|x-varnish|x-vercel-(id|ip-.*|forwarded-for)',
  ].join('|')})$`,
  'i',
);

/** The parts of a request that show its origin. */
export interface RequestOrigin {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** True where a proxy passed the request on: the connection's own address is the proxy's then, and says nothing of the client. */
export function wasForwarded({ headers }: Pick<RequestOrigin, 'headers'>): boolean {
  return Object.keys(headers).some((name) => forwardingHeaders.test(name));
}

/** True for a request that a process of this machine made itself. */
export function isLocalRequest(request: RequestOrigin): boolean {
  return isLoopbackAddress(request.socket.remoteAddress) && !wasForwarded(request);
}

function isLoopbackAddress(address: string | undefined): boolean {
  const plain = (address ?? '').replace(/^::ffff:/, '');
  return plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}

const hostHeader = /^(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::\d{1,5})?$/i;

/** The name in a `Host` header, lower case and without its port; null where it is no host and port, to the letter. */
export function hostNameOf(header: string | undefined): string | null {
  return hostHeader.exec(header ?? '')?.[1]?.toLowerCase() ?? null;
}
