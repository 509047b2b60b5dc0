import { expect, test } from 'vitest';
import { openTodos } from '../../src/upgrade/todos.ts';
import { projectRoot } from '../support/folders.ts';

test('what an upgrade left to do is done', async () => {
  expect(await openTodos(projectRoot)).toEqual([]);
});
