/** Gives the longest time that this process computed without a look at its sockets, while `work` went on. What other processes take of the machine is no part of it. */
export async function longestOwnWorkMs(work: () => Promise<unknown>): Promise<number> {
  const computedMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let [longest, last] = [0, computedMs()];
  const timer = setInterval(() => {
    const now = computedMs();
    longest = Math.max(longest, now - last);
    last = now;
  }, 10);
  await work().finally(() => clearInterval(timer));
  return longest;
}
