/** Returns whether this process loaded Node's TypeScript compiler, which happens only if code is not in the compile cache. */
import type { Job } from '../../src/child/in-child.ts';

const job: Job<null, boolean> = async () => {
  const { moduleLoadList } = process as { readonly moduleLoadList?: readonly string[] };
  if (!moduleLoadList) throw new Error('this Node does not list the modules that it loaded');
  return moduleLoadList.some((name) => name.includes('/amaro/'));
};
export default job;
