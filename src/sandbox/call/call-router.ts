import { Router, type IRoute, type RequestHandler } from 'express';
import type { CallFacts } from '../../contract/index.ts';
import { methodNotAllowed } from '../error-boundary.ts';
import { formBody } from '../web/form-body.ts';
import { jsonBody } from '../web/json-body.ts';

/** A row of a table of calls, as far as its route needs it. */
export interface Route extends Pick<CallFacts, 'path' | 'request' | 'fields' | 'fileField'> {
  readonly method: CallFacts['method'] | 'DELETE';
}

/** Mounts calls by their rows: path and method, checks, body, work. Another method on one of their paths is 405. */
export class CallRouter<Row extends Route> {
  readonly #router: Router;
  readonly #before: (row: Row) => readonly RequestHandler[];
  readonly #routes = new Map<string, { readonly route: IRoute; readonly methods: string[] }>();

  /**
   * `before` returns the handlers that run before the body of a call is read, in the contract's order of checks. `router` may
   * already have handlers. Default: an empty one.
   */
  constructor(before: (row: Row) => readonly RequestHandler[], router: Router = Router({ caseSensitive: true })) {
    this.#before = before;
    this.#router = router;
  }

  /** Answers a call by `work`. */
  on(row: Row, work: RequestHandler): this {
    const method = row.method.toLowerCase() as Lowercase<Row['method']>;
    const body = row.request ? [jsonBody] : row.fields && row.fileField === undefined ? [formBody] : [];
    const { route, methods } = this.#routes.get(row.path) ?? { route: this.#router.route(row.path), methods: [] };
    this.#routes.set(row.path, { route, methods });
    route[method](...this.#before(row), ...body, work);
    methods.push(row.method);
    return this;
  }

  /** The router, with the answer to other methods at its end. */
  finish(): Router {
    for (const { route, methods } of this.#routes.values()) route.all(methodNotAllowed(...methods.toSorted()));
    return this.#router;
  }
}
