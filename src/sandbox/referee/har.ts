import { STATUS_CODES } from 'node:http';
import type { Trace, TracedMessage } from './trace.ts';

type ListedCall = ReturnType<Trace['list']>[number];

/** A launch's calls as an HTTP Archive (HAR 1.2), for the tools that read those. Secrets are redacted, as in the trace. */
export function harOf(calls: readonly ListedCall[], baseUrl: string) {
  return {
    log: {
      version: '1.2',
      creator: { name: 'marketplace-app-kit sandbox', version: '1.0.0' },
      entries: calls.map((call) => ({
        startedDateTime: call.at,
        time: call.durationMs,
        request: {
          method: call.method,
          url: `${baseUrl}${call.path}`,
          httpVersion: 'HTTP/1.1',
          cookies: [],
          headers: headersOf(call.request),
          queryString: [...new URL(call.path, 'http://host').searchParams].map(([name, value]) => ({ name, value })),
          ...postData(call.request),
          headersSize: -1,
          bodySize: call.requestBytes,
        },
        response: {
          // HAR writes 0 where there was no answer.
          status: call.delivered ? (call.status ?? 0) : 0,
          statusText: call.delivered ? (STATUS_CODES[call.status ?? 0] ?? '') : '',
          httpVersion: 'HTTP/1.1',
          cookies: [],
          headers: headersOf(call.response),
          content: {
            size: call.responseBytes,
            mimeType: 'application/json',
            ...(call.response.body === null ? {} : { text: JSON.stringify(call.response.body) }),
          },
          redirectURL: '',
          headersSize: -1,
          bodySize: call.responseBytes,
        },
        cache: {},
        timings: { send: 0, wait: call.durationMs, receive: 0 },
        comment: call.endpoint,
      })),
    },
  };
}

function headersOf({ headers }: TracedMessage): { name: string; value: string }[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value }));
}

function postData({ headers, body }: TracedMessage) {
  return body === null
    ? {}
    : { postData: { mimeType: headers['content-type'] ?? 'application/json', text: JSON.stringify(body) } };
}
