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

/** Numbers on x86-64 and on arm64. Null: arm64 has no such call. */
type CallNumbers = readonly [x64: number, arm64: number | null];

/** Calls that are refused with EPERM, as if the right were missing. */
const refused: Readonly<Record<string, CallNumbers>> = {
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
  vmsplice: [278, 75],
  remap_file_pages: [216, 234],
  // Watches of files, whose number is limited for the server's user as a whole.
  inotify_init: [253, null],
  inotify_init1: [294, 26],
  fanotify_init: [300, 262],
  // Other processes.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  // Messages of sockets: a descriptor in a message on its way is open, and no process shows it.
  sendmsg: [46, 211],
  sendmmsg: [307, 269],
  // Asynchronous I/O, whose events have a limit for the whole machine.
  io_setup: [206, 0],
  io_submit: [209, 2],
  // Attributes of files, such as their project.
  file_setattr: [469, 469],
  // Log of the kernel.
  syslog: [103, 116],
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

const EPERM = 1;
const EINVAL = 22;
const ENOTTY = 25;
const ENOSYS = 38;
const EOPNOTSUPP = 95;
const EAFNOSUPPORT = 97;

/** Calls that are refused with an error on which programs take another way. */
const unsupported: readonly { readonly numbers: CallNumbers; readonly errno: number }[] = [
  // Its flags lie in memory, where a filter cannot look. The C library then calls `clone`.
  { numbers: [435, 435], errno: ENOSYS },
  // Extended attributes hold bytes that no size of a file shows.
  { numbers: [188, 5], errno: EOPNOTSUPP },
  { numbers: [189, 6], errno: EOPNOTSUPP },
  { numbers: [190, 7], errno: EOPNOTSUPP },
  { numbers: [463, 463], errno: EOPNOTSUPP },
];

/** Condition on one argument: its lower half under the mask is one of the values. */
interface ArgumentIs {
  readonly argument: number;
  /** Default: all bits. */
  readonly mask?: number;
  readonly oneOf: readonly number[];
}

/** A call that is decided by its arguments. The first alternative whose conditions all hold decides. */
interface CallByArguments {
  readonly numbers: CallNumbers;
  readonly alternatives: readonly (readonly ArgumentIs[])[];
  /** True: the alternatives pass, and the rest is refused. False: the other way round. */
  readonly allows: boolean;
  /** Error of a refused call. */
  readonly errno: number;
}

const mapSharedAnonymous = 0x21;
/** `CLONE_NEWTIME`, `NEWNS`, `NEWCGROUP`, `NEWUTS`, `NEWIPC`, `NEWUSER`, `NEWPID` and `NEWNET`. */
const cloneNamespaces = 0x7e02_0080;
const [cloneFiles, cloneThread] = [0x400, 0x1_0000];
const AF_UNIX = 1;
const fallocateKeepSize = 1;
const [SOL_IP, SOL_SOCKET, SOL_TCP, SOL_IPV6] = [0, 1, 6, 41];

/**
 * Calls that have many commands: those commands pass that Node, GDAL, the C library, shells and Python use. Left out are leases
 * (`F_SETLEASE` stops every open of the file, the server's too), notifications, and larger buffers of pipes and sockets,
 * which use memory that no count of the host shows.
 */
const byArguments: readonly CallByArguments[] = [
  {
    // socket. AF_UNIX alone: there is no network, and others, such as AF_VSOCK, belong to no network namespace.
    numbers: [41, 198],
    alternatives: [[{ argument: 0, oneOf: [AF_UNIX] }]],
    allows: true,
    errno: EAFNOSUPPORT,
  },
  {
    // socketpair.
    numbers: [53, 199],
    alternatives: [[{ argument: 0, oneOf: [AF_UNIX] }]],
    allows: true,
    errno: EAFNOSUPPORT,
  },
  {
    // fcntl. Descriptors and their flags, locks of processes (those of open files show no owner), F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_GET_SEALS.
    numbers: [72, 25],
    alternatives: [[{ argument: 1, oneOf: [0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032, 1034] }]],
    allows: true,
    errno: EINVAL,
  },
  {
    // ioctl. Terminals (TCGETS, TCSETS*, TCGETS2, TIOCGPGRP, TIOCGWINSZ), FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, FICLONE, FICLONERANGE, FS_IOC_FIEMAP, FS_IOC_GETFLAGS.
    numbers: [16, 29],
    alternatives: [
      [
        {
          argument: 1,
          oneOf: [
            ...[0x5401, 0x5402, 0x5403, 0x5404, 0x802c_542a, 0x540f, 0x5413, 0x541b, 0x5421, 0x5450, 0x5451],
            ...[0x4004_9409, 0x4020_940d, 0xc020_660b, 0x8008_6601],
          ],
        },
      ],
    ],
    allows: true,
    errno: ENOTTY,
  },
  {
    // prctl. Signal at the parent's end, dumpable to read (a child that is not would hide its descriptors), name, seccomp, capabilities to read, keep and drop, timer slack, reaper, no new privileges, huge pages, speculation, tagged addresses, pointer keys, memory sealing, names of mappings.
    numbers: [157, 167],
    alternatives: [
      [
        {
          argument: 0,
          oneOf: [
            ...[1, 2, 3, 7, 8, 15, 16, 21, 22, 23, 24, 27, 29, 30, 36, 37, 38, 39, 40, 41, 42, 47, 51, 52, 53, 54, 56],
            ...[65, 66, 0x5356_4d41],
          ],
        },
      ],
    ],
    allows: true,
    errno: EINVAL,
  },
  {
    // setsockopt, by level and option. SO_REUSEADDR, SO_BROADCAST, SO_KEEPALIVE, SO_LINGER, SO_REUSEPORT, SO_PASSCRED, SO_RCVTIMEO, SO_SNDTIMEO; TCP_NODELAY and keep-alive; IP_TOS, IP_RECVERR; IPV6_V6ONLY, IPV6_RECVERR.
    numbers: [54, 208],
    alternatives: [
      [
        { argument: 1, oneOf: [SOL_SOCKET] },
        { argument: 2, oneOf: [2, 6, 9, 13, 15, 16, 20, 21] },
      ],
      [
        { argument: 1, oneOf: [SOL_TCP] },
        { argument: 2, oneOf: [1, 4, 5, 6] },
      ],
      [
        { argument: 1, oneOf: [SOL_IP] },
        { argument: 2, oneOf: [1, 11] },
      ],
      [
        { argument: 1, oneOf: [SOL_IPV6] },
        { argument: 2, oneOf: [25, 26] },
      ],
    ],
    allows: true,
    errno: EPERM,
  },
  {
    // mmap. Pages that are shared and anonymous stay after madvise, and no resident size shows them.
    numbers: [9, 222],
    alternatives: [[{ argument: 3, mask: mapSharedAnonymous, oneOf: [mapSharedAnonymous] }]],
    allows: false,
    errno: EPERM,
  },
  {
    // clone. No further namespaces, whatever the kernel grants its users. Threads share their descriptors and processes do not, so that /proc shows all of them.
    numbers: [56, 220],
    alternatives: [
      [
        { argument: 0, mask: cloneNamespaces, oneOf: [0] },
        { argument: 0, mask: cloneThread + cloneFiles, oneOf: [0, cloneThread + cloneFiles] },
      ],
    ],
    allows: true,
    errno: EPERM,
  },
  {
    // fallocate. Blocks beyond the end of a file are in no size, and the limit for one file does not hold them.
    numbers: [285, 47],
    alternatives: [[{ argument: 1, mask: fallocateKeepSize, oneOf: [0] }]],
    allows: true,
    errno: EOPNOTSUPP,
  },
];

const loadWord = 0x20;
const bitwiseAnd = 0x54;
const jumpAlways = 0x05;
const jumpIfEqual = 0x15;
const jumpIfNotBelow = 0x35;
const answer = 0x06;
const allow = 0x7fff_0000;
const refuseWith = (errno: number) => 0x0005_0000 + errno;
const [numberAt, architectureAt, argumentsAt] = [0, 4, 16];

/** Code, steps forward if it holds, steps if it does not, operand. A step count has eight bits. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

/** Goes to the instruction after those of the condition if it holds, and `otherwise` further ones ahead if it does not. */
function conditionOf({ argument, mask, oneOf }: ArgumentIs, otherwise: number): Instruction[] {
  return [
    // Both processors are little-endian: the lower half comes first, and the kernel looks at no more of these.
    [loadWord, 0, 0, argumentsAt + 8 * argument],
    ...(mask === undefined ? [] : [[bitwiseAnd, 0, 0, mask] satisfies Instruction]),
    ...oneOf.map((value, i): Instruction => {
      const further = oneOf.length - 1 - i;
      return [jumpIfEqual, further, further === 0 ? otherwise : 0, value];
    }),
  ];
}

/** Decides a call by its arguments. The number of the call is loaded before, and no instruction follows that needs it. */
function decisionOf({ alternatives, allows, errno }: CallByArguments): Instruction[] {
  const [ofAlternative, ofRest] = allows ? [allow, refuseWith(errno)] : [refuseWith(errno), allow];
  const decided = alternatives.flatMap((conditions) =>
    // From the last condition on: each must know how many instructions follow it.
    conditions.reduceRight<Instruction[]>(
      (following, condition) => [...conditionOf(condition, following.length), ...following],
      [[answer, 0, 0, ofAlternative]],
    ),
  );
  return [...decided, [answer, 0, 0, ofRest]];
}

/** Runs `decision` for a call, and goes on behind it for others. */
const ifCall = (number: number | null, decision: readonly Instruction[]): Instruction[] =>
  number === null ? [] : [[jumpIfEqual, 0, decision.length, number], ...decision];

/** The filter as the kernel reads it; null for a processor whose numbers are not known here. */
export function seccompFilter(processor: string = process.arch): Buffer | null {
  const architecture = architectures[processor];
  if (!architecture) return null;
  const { id, otherAbiFrom, column } = architecture;
  const numbers = Object.values(refused).flatMap((call) => call[column] ?? []);
  const program: readonly Instruction[] = [
    [loadWord, 0, 0, architectureAt],
    [jumpIfEqual, 1, 0, id],
    [answer, 0, 0, refuseWith(EPERM)],
    [loadWord, 0, 0, numberAt],
    ...(otherAbiFrom === null
      ? []
      : [
          [jumpIfNotBelow, 0, 1, otherAbiFrom] satisfies Instruction,
          [answer, 0, 0, refuseWith(EPERM)] satisfies Instruction,
        ]),
    // To the answer behind the jump that passes by it.
    ...numbers.map((number, i): Instruction => [jumpIfEqual, numbers.length - i, 0, number]),
    [jumpAlways, 0, 0, 1],
    [answer, 0, 0, refuseWith(EPERM)],
    ...unsupported.flatMap(({ numbers: ofCall, errno }) => ifCall(ofCall[column], [[answer, 0, 0, refuseWith(errno)]])),
    ...byArguments.flatMap((call) => ifCall(call.numbers[column], decisionOf(call))),
    [answer, 0, 0, allow],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, ifTrue, ifFalse, operand], i) => {
    bytes.writeUInt16LE(code, i * 8);
    bytes.writeUInt8(ifTrue, i * 8 + 2);
    bytes.writeUInt8(ifFalse, i * 8 + 3);
    bytes.writeUInt32LE(operand, i * 8 + 4);
  });
  return bytes;
}
