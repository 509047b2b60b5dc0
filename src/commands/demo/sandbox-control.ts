import { KitError, limits } from '../../contract/index.ts';
import type { DemoOptions } from './options.ts';

/** What the demo does in the platform: as the marketplace, as the user, and as the clock. */
export interface SandboxControl {
  launch(appLaunchUrl: string): Promise<{ launchId: string; launchUrl: string }>;
  decide(decision: DemoOptions['decision'], operationId: string, launchId: string): Promise<void>;
  /** How many calls of the upload group the launch has made. */
  countUploadCalls(launchId: string): Promise<number>;
}

export function sandboxControl(sandboxUrl: string): SandboxControl {
  async function call<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(`${sandboxUrl}/sandbox/${path}`, {
      method: body ? 'POST' : 'GET',
      headers: body ? { 'content-type': 'application/json' } : {},
      body: body && JSON.stringify(body),
    });
    if (!response.ok) throw new KitError('sandbox_error', `the sandbox answered ${response.status} to ${path}`);
    return (await response.json()) as T;
  }
  return {
    async launch(launchUrl) {
      await call('apps', { id: 'demo', name: 'Reference app', launchUrl });
      return call('launches', { appId: 'demo' });
    },
    async decide(decision, operationId, launchId) {
      if (decision === 'expire') await call('clock', { advanceMs: limits.operationWindowMs, launchId });
      else await call(`operations/${operationId}/${decision}`, {});
    },
    async countUploadCalls(launchId) {
      const { calls } = await call<{ calls: { endpoint: string }[] }>(`launches/${launchId}/trace`);
      return calls.filter(({ endpoint }) => endpoint.startsWith('upload.')).length;
    },
  };
}
