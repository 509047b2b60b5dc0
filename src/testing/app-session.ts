import type { RunView } from '../app/runs/run-view.ts';
import type { PreviewStyle } from '../raster/index.ts';
import { KitError, type ValidationDetail } from '../contract/index.ts';

interface StepView {
  readonly id: string;
  readonly input?: { readonly synthetic: string };
  readonly inputs: Readonly<Record<string, object>>;
  readonly parameters: { readonly properties: Readonly<Record<string, { readonly type?: string }>> };
  readonly outputs: Readonly<Record<string, { readonly fileName: string; readonly preview?: PreviewStyle }>>;
}

export interface FoundItem {
  readonly collectionId: string;
  readonly itemId: string;
  readonly title: string;
}

/** The app as a browser sees it: opens a launch, keeps its cookie, uses the launch's JSON API. */
export interface AppSession {
  /** The launch's own address in the app, and what a browser sends with it. */
  readonly home: string;
  readonly cookie: string;
  readonly steps: readonly StepView[];
  /** Items of the platform, by a search of the app's. */
  searchItems(wanted: object): Promise<FoundItem[]>;
  startRun(wanted: object): Promise<RunView>;
  run(id: string): Promise<RunView>;
}

/** Opens the launch address like a browser that follows the redirect. The address holds the token: it is never shown. */
export async function openLaunch(launchUrl: string): Promise<AppSession> {
  const launched = await fetch(launchUrl, { redirect: 'manual' });
  const location = launched.headers.get('location');
  const cookie = launched.headers.getSetCookie()[0]?.split(';')[0];
  if (launched.status !== 303 || !location || !cookie)
    throw new KitError('launch_failed', `the app answered the launch with ${launched.status}`);
  const home = new URL(location, launchUrl);

  async function call<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(new URL(`api/${path}`, home), {
      method: body ? 'POST' : 'GET',
      headers: { cookie, ...(body ? { 'content-type': 'application/json' } : {}) },
      body: body ? JSON.stringify(body) : null,
    });
    // The kit's own app answers this.
    if (response.ok) return (await response.json()) as T;
    // An error's answer is the app's, too.
    const answer = (await response.json()) as { error?: string; code?: string; details?: ValidationDetail[] };
    const told = answer.error ?? String(response.status);
    const details = (answer.details ?? [])
      .filter(({ message }) => !told.includes(message))
      .map(({ path, message }) => `  ${path}: ${message}`);
    throw new KitError(answer.code ?? 'app_error', [`the app refused: ${told}`, ...details].join('\n'));
  }

  const { steps } = await call<{ steps: StepView[] }>('steps');
  return {
    home: home.href,
    cookie,
    steps,
    searchItems: async (wanted) => (await call<{ items: FoundItem[] }>('items/search', wanted)).items,
    startRun: (wanted) => call('runs', wanted),
    run: (id) => call(`runs/${id}`),
  };
}

/** `--param` values in the types that the step declares; what does not convert is left for the app to refuse. */
export function typedParameters(
  step: Pick<StepView, 'parameters'> | undefined,
  given: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]): [string, unknown] => {
      const type = step?.parameters.properties[name]?.type;
      if ((type === 'number' || type === 'integer') && value.trim() !== '' && Number.isFinite(Number(value)))
        return [name, Number(value)];
      if (type === 'boolean' && (value === 'true' || value === 'false')) return [name, value === 'true'];
      return [name, value];
    }),
  );
}
