import { setTimeout as sleep } from 'node:timers/promises';

/** Actions and views of the drill in the sandbox: as the marketplace, as the user, and as the judge. */
export interface DrillPlatform {
  launch(appUrl: string): Promise<{ launchId: string; launchUrl: string }>;
  operations(): Promise<PlatformOperation[]>;
  decide(operationId: string, decision: 'approve' | 'reject'): Promise<void>;
  uploads(launchId: string): Promise<PlatformUpload[]>;
  calls(launchId: string): Promise<PlatformCall[]>;
  /** These faults and no others, from now on; the first that fits a call fires. */
  arm(faults: readonly DrillFault[]): Promise<void>;
  sha256(fileId: string): Promise<string>;
  /** The referee's rules that were broken, and what it has seen of that. */
  failedRules(launchId: string): Promise<{ rule: string; violations: Violation[] }[]>;
}

export interface Violation {
  readonly calls: readonly { readonly endpoint: string; readonly at: string }[];
}

/** Body of `POST /sandbox/faults`. */
export interface DrillFault {
  readonly endpoint: string;
  readonly times: number;
  readonly effect: { readonly delayMs: number } | { readonly dropResponse: true };
}

export interface PlatformOperation {
  readonly operationId: string;
  readonly launchId: string;
  readonly status: string;
}

export interface PlatformUpload {
  readonly operationId: string;
  readonly fileId: string | null;
}

export interface PlatformCall {
  readonly endpoint: string;
  readonly status: number | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** So many calls are slowed: more than are made before the next fault. */
export const manyCalls = 10_000;
/** So that a fault can fall into a call. */
export const slowCalls: readonly DrillFault[] = Object.entries({
  'operation.create': 300,
  'upload.initiate': 60,
  'upload.chunk': 25,
  'upload.complete': 150,
}).map(([endpoint, delayMs]) => ({
  endpoint,
  times: manyCalls,
  effect: { delayMs },
}));

/** It is killed too, and fills up: asked again until it answers. */
const patienceMs = 60_000;

export function drillPlatform(url: string, apiKey: string, digest: (bytes: Uint8Array) => string): DrillPlatform {
  async function asked(path: string, init: RequestInit = {}): Promise<Response> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const response = await fetch(`${url}${path}`, init).catch((error: unknown) => {
        if (performance.now() > deadline) throw error;
        return null;
      });
      // A decision that was made before its answer was lost is refused the second time.
      if (response?.ok || response?.status === 409) return response;
      if (response && (response.status < 500 || performance.now() > deadline))
        throw new Error(`the sandbox answered ${response.status} to ${path}: ${await response.text()}`);
      await sleep(200);
    }
  }
  async function control<T>(path: string, body?: object): Promise<T> {
    const init = body
      ? { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
      : {};
    return (await (await asked(`/sandbox/${path}`, init)).json()) as T;
  }
  return {
    async launch(appUrl) {
      await control('apps', { id: 'drill', name: 'Drill', launchUrl: `${appUrl}/launch` });
      return control('launches', { appId: 'drill' });
    },
    operations: async () => (await control<{ operations: PlatformOperation[] }>('operations')).operations,
    decide: async (operationId, decision) => void (await control(`operations/${operationId}/${decision}`, {})),
    uploads: async (launchId) => (await control<{ uploads: PlatformUpload[] }>(`launches/${launchId}`)).uploads,
    calls: async (launchId) => (await control<{ calls: PlatformCall[] }>(`launches/${launchId}/trace`)).calls,
    async arm(faults) {
      await asked('/sandbox/faults', { method: 'DELETE' });
      for (const fault of faults) await control('faults', fault);
    },
    async sha256(fileId) {
      const link = await asked(`/public/file/download/url?fileId=${fileId}`, { headers: { 'x-api-key': apiKey } });
      return digest(new Uint8Array(await (await fetch(await link.text())).arrayBuffer()));
    },
    async failedRules(launchId) {
      const { rules } = await control<{ rules: { rule: string; result: string; violations: Violation[] }[] }>(
        `launches/${launchId}/verdict`,
      );
      return rules.filter(({ result }) => result === 'failed').map(({ rule, violations }) => ({ rule, violations }));
    },
  };
}
