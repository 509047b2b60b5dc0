import type { Permission, WireProfile } from '../../contract/index.ts';
import { unpaced, type Target } from '../../drift/target.ts';
import { sandboxControl } from '../../testing/sandbox-control.ts';
import { startOwnSandbox } from '../own-sandbox.ts';

/** Nobody answers there, and nobody asks it: a launch needs an address. */
const noApp = 'http://127.0.0.1:9/launch';

/** Time limit for an answer of the sandbox in this process. It is late only if the machine is busy. */
const ownAnswerMs = 10 * 60_000;

/** A sandbox of its own, as something to probe. */
export async function sandboxTarget(
  folder: string,
  profile: WireProfile,
  permissions: readonly Permission[],
): Promise<{ readonly target: Target; close(): Promise<void> }> {
  const { url, apiKey, adminKey, close } = await startOwnSandbox({ folder, profile });
  const control = sandboxControl({ url, adminKey });
  let token: Promise<string> | null = null;
  return {
    target: {
      url,
      apiKey,
      profile,
      permissions,
      pace: unpaced,
      answerMs: ownAnswerMs,
      token: () => (token ??= control.launch(noApp).then((launch) => launch.token)),
      approve: async (operationId) => void (await control.approve(operationId)),
    },
    close,
  };
}
