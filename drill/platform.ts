/** What the drill does and sees in the sandbox: as the marketplace, as the user, and as the judge. */
export interface DrillPlatform {
  launch(appUrl: string): Promise<{ launchId: string; launchUrl: string }>;
  operations(): Promise<PlatformOperation[]>;
  decide(operationId: string, decision: 'approve' | 'reject'): Promise<void>;
  uploads(launchId: string): Promise<PlatformUpload[]>;
  calls(launchId: string): Promise<PlatformCall[]>;
  /** These faults and no others, from now on; the first that fits a call fires. */
  arm(faults: readonly DrillFault[]): Promise<void>;
  sha256(fileId: string): Promise<string>;
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

export function drillPlatform(url: string, apiKey: string, digest: (bytes: Uint8Array) => string): DrillPlatform {
  async function control<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(`${url}/sandbox/${path}`, {
      method: body ? 'POST' : 'GET',
      headers: body ? { 'content-type': 'application/json' } : {},
      body: body && JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`the sandbox answered ${response.status} to ${path}: ${await response.text()}`);
    return (await response.json()) as T;
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
      await fetch(`${url}/sandbox/faults`, { method: 'DELETE' });
      for (const fault of faults) await control('faults', fault);
    },
    async sha256(fileId) {
      const link = await fetch(`${url}/public/file/download/url?fileId=${fileId}`, { headers: { 'x-api-key': apiKey } });
      return digest(new Uint8Array(await (await fetch(await link.text())).arrayBuffer()));
    },
  };
}
