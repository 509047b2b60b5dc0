// Starts the sandbox in a container, as a test would, and approves the operation of a launch. Needs Docker or Podman, and the image
// `marketplace-certifier` (docker build --target certifier -t marketplace-certifier .).
import { randomBytes } from 'node:crypto';
import { GenericContainer, Wait } from 'testcontainers';

const [apiKey, adminKey] = [randomBytes(24).toString('base64url'), randomBytes(24).toString('base64url')];
const image = process.env['SANDBOX_IMAGE'] ?? 'marketplace-certifier';
// Signed links have the address of PUBLIC_URL, so the port outside is the port inside.
const url = 'http://localhost:4010';

const settings = { SANDBOX_API_KEY: apiKey, SANDBOX_ADMIN_KEY: adminKey, PUBLIC_URL: url };
const container = new GenericContainer(image)
  .withEnvironment(settings)
  .withWaitStrategy(Wait.forLogMessage(/sandbox ready/));
// An engine without port mapping, such as one in a network namespace, shares the network of its host.
const placed =
  process.env['SANDBOX_NETWORK'] === 'host'
    ? container.withNetworkMode('host')
    : container.withExposedPorts({ container: 4010, host: 4010 });
const sandbox = await placed.start();
try {
  const launch = await control('/sandbox/launches', {});
  const created = await platform(`/public/external-app/operation/${launch.token}`, { name: 'A test' });
  await control(`/sandbox/operations/${created.operationId}/approve`);
  const { status } = await platform(
    `/public/external-app/operation/${launch.token}?operationId=${created.operationId}`,
  );
  console.log(`the operation is ${status}`);
} finally {
  await sandbox.stop();
}

/** Control calls of the sandbox: launches, approvals, faults, the clock. */
function control(path, body = {}) {
  return call(path, 'POST', body, { 'x-admin-key': adminKey });
}

/** Calls that an app makes. With a body a POST, else a GET. */
function platform(path, body) {
  return call(path, body === undefined ? 'GET' : 'POST', body, { 'x-api-key': apiKey });
}

async function call(path, method, body, headers) {
  const answer = await fetch(url + path, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}
