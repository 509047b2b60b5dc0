"""One deed of a process that a file has taken over: `deeds.py NAME [LENT FILE]`. Prints `done` if it worked. Every loop is bounded."""
import ctypes
import fcntl
import mmap
import os
import select
import socket
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
MIB = 1 << 20


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def kernel_settings(_lent):
    # Opened, and not written to. A kernel without modules has no modprobe.
    names = [f"/proc/sys/kernel/{name}" for name in ("core_pattern", "modprobe", "sysrq")]
    for path in filter(os.path.exists, names):
        os.close(os.open(path, os.O_WRONLY))


def write_lease(lent):
    fcntl.fcntl(os.open(lent, os.O_RDONLY), 1024, fcntl.F_WRLCK)


def notification(lent):
    fcntl.fcntl(os.open(os.path.dirname(lent), os.O_RDONLY), 1026, 1)


def shared_pages(_lent, size=64 * MIB):
    pages = mmap.mmap(-1, size, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    pages.write(b"x" * size)


def shared_zero(_lent):
    file = os.open("/dev/zero", os.O_RDWR)
    mmap.mmap(file, 16 * MIB, mmap.MAP_SHARED).write(b"x" * MIB)


def page_tables(_lent):
    # A page table of 4 KiB for each 2 MiB of which one byte is read.
    private_no_reserve = 0x2 | 0x20 | 0x4000
    for _ in range(1_500):
        at = libc.mmap(None, 64 << 21, mmap.PROT_READ, private_no_reserve, -1, 0)
        libc.madvise(at, 64 << 21, 15)
        for i in range(64):
            ctypes.string_at(at + (i << 21), 1)
    time.sleep(1)


def locks(_lent):
    files = [os.open(f"lock-{i}", os.O_RDWR | os.O_CREAT) for i in range(300)]
    for file in files:
        for i in range(400):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, (400 - i) * 2)
    time.sleep(2)


def filled(one):
    """A socket whose buffers hold no more."""
    one.setblocking(False)
    try:
        while True:
            one.send(b"x" * 65_536)
    except BlockingIOError:
        return one


def sockets(_lent):
    server = socket.create_server(("127.0.0.1", 0), backlog=100)
    kept = []
    for _ in range(100):
        one = socket.create_connection(server.getsockname())
        other, _address = server.accept()
        kept.append((filled(one), other))
    time.sleep(2)


def unix_sockets(_lent):
    kept = []
    for _ in range(8):
        if os.fork() == 0:
            for _ in range(200):
                one, other = socket.socketpair()
                kept.append((filled(one), other))
            time.sleep(3)
            os._exit(0)
    time.sleep(3)


def descriptors_in_flight(lent):
    one, _other = socket.socketpair()
    socket.send_fds(one, [b"x"], [os.open(lent, os.O_RDONLY)])


def locks_without_owner(_lent):
    # F_OFD_SETLK with a struct flock of zeros but its type.
    lock = b"\1" + bytes(31)
    fcntl.fcntl(os.open("lock", os.O_RDWR | os.O_CREAT), 37, lock)


def watch_sets(_lent):
    kept = [select.epoll() for _ in range(200)]
    time.sleep(3)
    kept.clear()


def many_descriptors(_lent):
    for _ in range(20):
        if os.fork() == 0:
            for _ in range(400):
                os.open("/dev/null", os.O_RDONLY)
            time.sleep(10)
            os._exit(0)
    time.sleep(10)


def removed_mapping(_lent):
    for i in range(3):
        with open(f"mapped-{i}", "w+b") as file:
            file.write(b"x" * 20 * MIB)
            file.flush()
            libc.mmap(None, 4_096, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        os.unlink(f"mapped-{i}")
    time.sleep(3)


def blocks_beyond_end(_lent):
    checked(libc.fallocate(os.open("small", os.O_RDWR | os.O_CREAT), 1, ctypes.c_long(0), ctypes.c_long(200 * MIB)))


def attributes(_lent):
    for i in range(100):
        with open(f"x{i}", "w"):
            os.setxattr(f"x{i}", "user.a", b"x" * 3_000)


def deep_folders(_lent):
    for _ in range(25):
        os.mkdir("x" * 200)
        os.chdir("x" * 200)
    for i in range(12):
        with open(f"f{i}", "wb") as file:
            file.write(b"x" * 10 * MIB)
        time.sleep(0.05)


def deleted_files(_lent):
    kept = []
    for i in range(12):
        kept.append(open(f"f{i}", "wb"))
        os.unlink(f"f{i}")
        kept[-1].write(b"x" * 10 * MIB)
        kept[-1].flush()
    time.sleep(2)


def answer_at_once(_lent):
    for i in range(8):
        with open(f"f{i}", "wb") as file:
            file.write(b"x" * 10 * MIB)


def watches(_lent):
    checked(libc.inotify_init())


def namespace(_lent):
    # clone(CLONE_NEWUSER | SIGCHLD), by its number on x86-64.
    if checked(libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)) == 0:
        os._exit(0)


def large_pipe(_lent):
    fcntl.fcntl(os.pipe()[0], 1031, MIB)


def large_socket(_lent):
    one, _other = socket.socketpair()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MIB)
    if one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < 500_000:
        raise OSError("it stayed as it was")


def hidden_descriptors(_lent):
    # The descriptors of a process that cannot be dumped are hidden.
    checked(libc.prctl(4, 0))


def terminal(_lent):
    os.openpty()


def greeted(server):
    """Sends PostgreSQL's start message, and expects its answer: authentication."""
    words = b"user\0kit\0database\0postgres\0\0"
    server.sendall((8 + len(words)).to_bytes(4, "big") + (196_608).to_bytes(4, "big") + words)
    if server.recv(1) != b"R":
        raise OSError("it did not answer")


def database_port(port):
    greeted(socket.create_connection(("127.0.0.1", int(port)), timeout=5))


def database_socket(path):
    server = socket.socket(socket.AF_UNIX)
    server.settimeout(5)
    server.connect(path)
    greeted(server)


def database_files(folder):
    with open(f"{folder}/PG_VERSION", "rb") as file:
        file.read()


def environments(address):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if address.encode() in file.read():
                    return
        except OSError:
            pass
    raise OSError("no environment has it")


try:
    deed, *lent_files = sys.argv[1:]
    globals()[deed](lent_files[0] if lent_files else "")
    print("done")
except (OSError, ValueError) as error:
    print(f"{type(error).__name__}: {error}")
