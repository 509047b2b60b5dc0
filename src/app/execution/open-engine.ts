import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { KitError, validationDetails } from '../../contract/index.ts';
import { codeOf, isRecord, messageOf } from '../../files/index.ts';
import { isLabel } from '../../steps/step.ts';
import { CommandEngine, commandTemplates, placeholderProblem } from './command-engine.ts';
import type { KubernetesSettings } from './kubernetes-engine.ts';
import type { StepEngine } from './step-engine.ts';

/** The pod and its parts are Kubernetes' own: the API server checks them. */
const kubernetesFile = z.strictObject({
  $schema: z.string().optional(),
  kubernetes: z.strictObject({
    namespace: z.string().min(1),
    pod: z.custom<KubernetesSettings['pod']>(
      (pod) => isRecord(pod) && Array.isArray(pod['containers']) && pod['containers'].length > 0,
      'must be a pod with a container',
    ),
    labels: z.record(z.string().refine(isLabel), z.custom<NonNullable<KubernetesSettings['labels']>[string]>(isRecord)).optional(), // oxfmt-ignore
  }),
});

/** Opens the engine that a file describes (docs/executors.md). `appModule`: path of the app, which jobs of the same installation load. Throws `KitError` (`bad_configuration`) with what is wrong. */
export async function openEngine(path: string, appModule?: string): Promise<StepEngine> {
  const wrong = (what: string) => new KitError('bad_configuration', `STEP_EXECUTOR=${path}: ${what}`);
  let file: unknown;
  try {
    file = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw wrong(codeOf(error) === null ? `is no JSON: ${messageOf(error)}` : `cannot be read (${codeOf(error)})`);
  }
  const read = <T>(result: z.ZodSafeParseResult<T>): T => {
    if (result.success) return result.data;
    throw wrong(validationDetails(result.error).map((detail) => `${detail.path} ${detail.message}`).join('; ')); // oxfmt-ignore
  };
  if (isRecord(file) && 'kubernetes' in file) {
    const { namespace, pod, labels } = read(kubernetesFile.safeParse(file)).kubernetes;
    // An app without Kubernetes does not load its client.
    const { KubernetesEngine } = await import('./kubernetes-engine.ts');
    return new KubernetesEngine({ namespace, pod, ...(labels && { labels }) });
  }
  const templates = read(commandTemplates.safeParse(file));
  const problem = placeholderProblem(templates);
  if (problem !== null) throw wrong(problem);
  return new CommandEngine(templates, { ...process.env, ...(appModule !== undefined && { MY_APP: appModule }) });
}
