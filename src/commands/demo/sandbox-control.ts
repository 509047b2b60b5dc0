import type { AppDefinition } from '../../app/definition/app-definition.ts';
import { assumedLimits } from '../../contract/index.ts';
import { sandboxCall } from '../../testing/sandbox-call.ts';
import type { DemoOptions } from './options.ts';

/** What the demo does in the platform: as the marketplace, as the user, and as the clock. */
export interface SandboxControl {
  launch(appLaunchUrl: string): Promise<{ launchId: string; launchUrl: string }>;
  decide(decision: DemoOptions['decision'], operationId: string, launchId: string): Promise<void>;
  /** How many calls of the upload group the launch has made. */
  countUploadCalls(launchId: string): Promise<number>;
}

export function sandboxControl(
  sandboxUrl: string,
  { id, name, description, profile }: Pick<AppDefinition, 'id' | 'name' | 'description' | 'profile'>,
): SandboxControl {
  const { operationWindowMs } = profile?.limits ?? assumedLimits;
  const call = <T>(path: string, body?: object) => sandboxCall<T>({ url: sandboxUrl }, path, body);
  return {
    async launch(launchUrl) {
      await call('apps', { id, name, description, launchUrl });
      return call('launches', { appId: id });
    },
    async decide(decision, operationId, launchId) {
      if (decision === 'expire') await call('clock', { advanceMs: operationWindowMs, launchId });
      else await call(`operations/${operationId}/${decision}`, {});
    },
    async countUploadCalls(launchId) {
      const { calls } = await call<{ calls: { endpoint: string }[] }>(`launches/${launchId}/trace`);
      return calls.filter(({ endpoint }) => endpoint.startsWith('upload.')).length;
    },
  };
}
