/** Stands for your app, whatever it is made with; here it is the one in Python. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export async function startMyApp({ platformUrl, apiKey }: { platformUrl: string; apiKey: string }) {
  const script = fileURLToPath(new URL('../python/app.py', import.meta.url));
  const app = spawn('python3', [script], {
    env: { ...process.env, PLATFORM_URL: platformUrl, PLATFORM_API_KEY: apiKey, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: app.stdout })) {
    const url = /^app ready (\S+)$/.exec(line)?.[1];
    if (url) return { launchUrl: `${url}/launch`, stop: () => void app.kill() };
  }
  throw new Error('the app did not start');
}
