/** System calls that no job has a use for, as a filter that the kernel holds a child to (seccomp, classic BPF). */

interface Architecture {
  /** `AUDIT_ARCH_*` of the kernel. */
  readonly id: number;
  /** Numbers from here on are those of another ABI on the same processor. */
  readonly otherAbiFrom: number | null;
  readonly column: 0 | 1;
}

const architectures: Partial<Record<string, Architecture>> = {
  x64: { id: 0xc000003e, otherAbiFrom: 0x4000_0000, column: 0 },
  arm64: { id: 0xc00000b7, otherAbiFrom: null, column: 1 },
};

/** Numbers on x86-64 and on arm64. */
const refused: Readonly<Record<string, readonly [number, number]>> = {
  // Keys of the session that started the server.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Memory that no process has mapped, which nobody would count.
  memfd_create: [319, 279],
  memfd_secret: [447, 447],
  shmget: [29, 194],
  semget: [64, 190],
  msgget: [68, 186],
  mq_open: [240, 180],
  // Other processes.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  pidfd_getfd: [438, 438],
  // Mounts and namespaces.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  unshare: [272, 97],
  setns: [308, 268],
  open_tree: [428, 428],
  open_tree_attr: [467, 467],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  mount_setattr: [442, 442],
  open_by_handle_at: [304, 265],
  // Large parts of the kernel.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
};

/** `AF_UNIX`, `AF_INET`, `AF_INET6`: what programs cannot do without. Others, as AF_VSOCK, belong to no network namespace. */
const socketFamilies = [1, 2, 10];
/** Calls that are allowed or refused by the value of one argument, numbers as above. */
const byArgument: readonly {
  readonly numbers: readonly [number, number];
  readonly argument: number;
  readonly values: readonly number[];
  /** True: only these values pass. False: only these are refused. */
  readonly only: boolean;
}[] = [
  { numbers: [41, 198], argument: 0, values: socketFamilies, only: true },
  // SO_SNDBUF, SO_RCVBUF and F_SETPIPE_SZ: larger buffers, in memory that nobody would count.
  { numbers: [54, 208], argument: 2, values: [7, 8], only: false },
  { numbers: [72, 25], argument: 1, values: [1031], only: false },
];

const loadWord = 0x20;
const jumpIfEqual = 0x15;
const jumpIfNotBelow = 0x35;
const answer = 0x06;
const allow = 0x7fff_0000;
/** EPERM, as if the right were missing. */
const refuse = 0x0005_0001;
const [numberAt, architectureAt, argumentsAt] = [0, 4, 16];

/** The filter as the kernel reads it; null for a processor whose numbers are not known here. */
export function seccompFilter(processor: string = process.arch): Buffer | null {
  const architecture = architectures[processor];
  if (!architecture) return null;
  const { id, otherAbiFrom, column } = architecture;
  const numbers = Object.values(refused).map((one) => one[column]);
  const checks: [code: number, k: number][] = [
    ...(otherAbiFrom === null ? [] : [[jumpIfNotBelow, otherAbiFrom] satisfies [number, number]]),
    ...numbers.map((one): [number, number] => [jumpIfEqual, one]),
  ];
  /** Code, steps forward if it holds, steps if it does not, operand. */
  type Instruction = [number, number, number, number];
  /** Each decides, or goes on with the next. The number of the call is loaded before and after. */
  const decisions = byArgument.map(({ numbers: ofCall, argument, values, only }): Instruction[] => {
    const [found, other] = only ? [allow, refuse] : [refuse, allow];
    return [
      [jumpIfEqual, 0, values.length + 3, ofCall[column]],
      // Both processors are little-endian: the lower half comes first, and the kernel looks at no more of these.
      [loadWord, 0, 0, argumentsAt + 8 * argument],
      ...values.map((value, i): Instruction => [jumpIfEqual, values.length - i, 0, value]),
      [answer, 0, 0, other],
      [answer, 0, 0, found],
    ];
  });
  const rest = decisions.flat();
  const program: Instruction[] = [
    [loadWord, 0, 0, architectureAt],
    [jumpIfEqual, 1, 0, id],
    [answer, 0, 0, refuse],
    [loadWord, 0, 0, numberAt],
    // To the last instruction, past those that follow and the one that allows.
    ...checks.map(([code, k], i): Instruction => [code, checks.length - i + rest.length, 0, k]),
    ...rest,
    [answer, 0, 0, allow],
    [answer, 0, 0, refuse],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, yes, no, k], i) => {
    bytes.writeUInt16LE(code, i * 8);
    bytes.writeUInt8(yes, i * 8 + 2);
    bytes.writeUInt8(no, i * 8 + 3);
    bytes.writeUInt32LE(k, i * 8 + 4);
  });
  return bytes;
}
