/** Runs before each file of tests; files share a process and the modules that it has loaded (`isolate: false`). */
import { afterAll } from 'vitest';
import { cleanUp } from './cleanup.ts';

afterAll(cleanUp);
