// @ts-check
// Calls of the app's HTTP API.
const { base } = document.documentElement.dataset;

/** Time limit for reading lists. */
const answerWithinMs = 30_000;

/**
 * A problem that the app found. For invalid parameters a path is a parameter's name, otherwise a place in the request.
 * @typedef {{ path: string, message: string }} Detail
 */

/** The app refused a request. */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {string} code
   * @param {Detail[]} details
   */
  constructor(message, code, details) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/**
 * Calls the app's API. Rejects with `Refusal` if the app refuses.
 * @param {string} path
 * @param {object} [body] of a POST; without one, a GET
 * @param {{ signal?: AbortSignal }} [options]
 * @returns {Promise<any>}
 */
export async function call(path, body, { signal } = {}) {
  const response = await fetch(`${base}/api/${path}`, {
    ...(signal && { signal }),
    ...(body !== undefined && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Refusal(answer.error, answer.code, answer.details ?? []);
  return answer;
}

/**
 * Reads from the app's API. Rejects with a readable message if no response arrives in time.
 * @param {string} path
 * @param {object} [body]
 */
export async function look(path, body) {
  try {
    return await call(path, body, { signal: AbortSignal.timeout(answerWithinMs) });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'TimeoutError')
      throw new Error('the platform does not respond; try again in a moment', { cause: error });
    throw error;
  }
}

/**
 * Address of the page of a run.
 * @param {string} id
 */
export const pageOfRun = (id) => `${base}/runs/${id}`;
