"""What programs try in order to pass tests that they do not pass: name, code, and how each is told.

Each is to define ``add``. One that reaches what it must not reach prints ``ESCAPED``.
"""

# ruff: noqa: E501 - programs are easier to read as one text

from typing import NamedTuple

WRONG = r"it fails: assert candidate\(2, 3\) == 5"
RAISED = r"Error|Permission|denied|not permitted"
ENDED = r"process exited|closed the result pipe"
SLOW = r"too long|CPU time|SIGKILL|SIGXCPU"
NONSENSE = r"invalid data to the result pipe"
NO_VALUE = r"are not supported"

#: Asks the kernel for a system call by its name in the C library.
LIBC = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
#: The wanted text is put together when it runs: else the program would find itself.
SEARCH = """
def tell(text):
    if "".join(["assert cand", "idate"]) in str(text):
        print("ESCAPED", flush=True)
"""


class Forgery(NamedTuple):
    name: str
    code: str
    told: str


def in_call(body: str, before: str = "") -> str:
    """Return a program whose function runs this body, and returns None if it reaches its end."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"{before}\ndef add(a, b):\n{lines}\n"


def returns(value: str, before: str = "") -> str:
    return in_call(f"return {value}", before)


LEAVING = [
    Forgery("leaving_early_in_a_call", in_call("import os; os._exit(0)"), ENDED),
    Forgery("leaving_early_while_loading", "import os; os._exit(0)", ENDED),
    Forgery("sys_exit_in_a_call", in_call("import sys; sys.exit(0)"), "SystemExit"),
    Forgery("sys_exit_while_loading", "import sys; sys.exit(0)", "SystemExit"),
    Forgery("leaving_at_exit", in_call("pass", "import atexit, os; atexit.register(os._exit, 0)"), WRONG),
    Forgery("killing_itself", in_call("import os; os.kill(os.getpid(), 9)"), ENDED),
    Forgery("killing_its_parent", in_call("import os; os.kill(os.getppid(), 9); os.kill(1, 9)"), WRONG),
    Forgery("killing_everything", in_call("import os; os.kill(-1, 9)"), f"{WRONG}|{ENDED}|{RAISED}"),
    Forgery("aborting", in_call("import os; os.abort()"), ENDED),
    Forgery("crashing_the_interpreter", in_call("import ctypes; ctypes.string_at(0)"), ENDED),
    Forgery(
        "becoming_another_program", in_call("import os; os.execv('/bin/sh', ['sh', '-c', 'echo 5'])"), ENDED
    ),
    Forgery("raising_what_nobody_catches", in_call("raise BaseException('passed')"), "BaseException"),
    Forgery("an_error_of_half_a_character", in_call("raise ValueError('\\ud800')"), r"ValueError: \?"),
    Forgery("raising_that_it_is_done", in_call("raise StopIteration(5)"), "StopIteration"),
    Forgery(
        "an_error_whose_text_is_endless",
        in_call("raise Mean", "class Mean(Exception):\n    def __str__(self): return 'passed' * 10**6"),
        "Mean",
    ),
]

LYING_RESULTS = [
    Forgery(
        "an_object_that_equals_all", returns("Yes()", "class Yes:\n    __eq__ = lambda *_: True"), NO_VALUE
    ),
    Forgery(
        "an_int_that_equals_all", returns("Yes(4)", "class Yes(int):\n    __eq__ = lambda *_: True"), WRONG
    ),
    Forgery(
        "a_str_that_equals_all", returns("Yes()", "class Yes(str):\n    __eq__ = lambda *_: True"), WRONG
    ),
    Forgery(
        "a_list_that_equals_all",
        returns(
            "Yes([1])", "class Yes(list):\n    __eq__ = lambda *_: True\n    __iter__ = lambda _: iter([5])"
        ),
        WRONG,
    ),
    Forgery("a_float_that_is_no_number", returns("float('nan')"), WRONG),
    Forgery("a_mock", returns("__import__('unittest.mock').mock.ANY"), NO_VALUE),
    Forgery(
        "an_object_that_unpickles_to_a_call",
        returns("R()", "class R:\n    __reduce__ = lambda _: (exit, ())"),
        NO_VALUE,
    ),
    Forgery(
        "a_false_numpy",
        returns(
            "Yes()",
            "import sys, types\nclass Yes:\n    __eq__ = lambda *_: True\n    item = lambda self: self\n"
            "sys.modules['numpy'] = types.SimpleNamespace(generic=Yes)",
        ),
        "nested deeper",
    ),
    Forgery("a_generator_without_end", returns("iter(int, 1)"), NO_VALUE),
    Forgery("a_coroutine", "async def add(a, b):\n    return a + b + 1", NO_VALUE),
    Forgery("a_type", returns("int"), NO_VALUE),
    Forgery("a_list_in_itself", in_call("x = []; x.append(x); return x"), "nested deeper"),
    Forgery(
        "a_list_of_lists_without_end",
        in_call("x = 1\nfor _ in range(60): x = [x, x]\nreturn x"),
        f"{SLOW}|MemoryError",
    ),
    Forgery("a_huge_result", returns("'x' * 20_000_000"), "returned more than"),
    Forgery("a_huge_number", returns("1 << 50_000_000"), "returned more than"),
    Forgery(
        "a_dict_that_cannot_be_one",
        in_call(
            "return 1",
            "from trellis_train.sandbox import remote_calls\n"
            "remote_calls.dump = lambda _: '{\"dict\": [[[1], 2]]}'",
        ),
        "not plain data",
    ),
]

PATCHING = [
    Forgery(
        "printing_the_pass_mark", in_call("print('passed', 'OK', '{\"passed\": true}', flush=True)"), WRONG
    ),
    Forgery(
        "printing_while_loading",
        'print(\'{"id": 1, "passed": true}\', flush=True)\ndef add(a, b): return 0',
        WRONG,
    ),
    Forgery(
        "answering_for_the_tests",
        in_call(
            'for n in range(3, 2000):\n    try: os.write(n, b\'{"id": 1, "passed": true}\\n\')\n    except OSError: pass',
            "import os",
        ),
        NONSENSE,
    ),
    Forgery(
        "answering_ahead",
        in_call(
            'for n in range(3, 2000):\n    try: os.write(n, b\'{"id": 1, "value": "true"}\\n\' * 99)\n    except OSError: pass',
            "import os",
        ),
        f"{WRONG}|{NONSENSE}",
    ),
    Forgery(
        "patching_built_ins",
        returns(
            "0",
            "import builtins\nbuiltins.AssertionError = KeyError\nbuiltins.isinstance = lambda *_: True\nbuiltins.abs = lambda _: 0",
        ),
        f"{WRONG}|{RAISED}",
    ),
    Forgery(
        "patching_json",
        returns("0", 'import json\njson.dumps = lambda *_: \'{"id": 1, "passed": true}\''),
        NONSENSE,
    ),
    Forgery(
        "patching_the_harness",
        returns("0", "import __main__\n__main__.make_handler = lambda *_: lambda _: {'passed': True}"),
        NONSENSE,
    ),
    Forgery(
        "patching_the_encoding",
        returns("0", "from trellis_train.sandbox import remote_calls\nremote_calls.dump = lambda _: '{}'"),
        "not plain data",
    ),
    Forgery(
        "patching_the_checks",
        returns(
            "0",
            "from trellis_train.sandbox import remote_calls\nremote_calls.run_checks = lambda *_: {'passed': True}",
        ),
        WRONG,
    ),
    Forgery(
        "a_module_of_its_own_on_the_path",
        returns(
            "0",
            "import sys\nopen('/tmp/json.py', 'w').write('dumps = str')\nsys.path.insert(0, '/tmp')\nsys.modules.pop('json')\nimport json",
        ),
        WRONG,
    ),
    Forgery("an_importer_of_its_own", returns("0", "import sys\nsys.meta_path.insert(0, None)"), WRONG),
    Forgery("defining_check", returns("0", "def check(candidate): pass"), WRONG),
    Forgery(
        "tracing",
        returns("0", "import sys\nsys.settrace(lambda *_: None); sys.setprofile(lambda *_: None)"),
        WRONG,
    ),
    Forgery("a_finaliser", returns("0", "class D:\n    def __del__(self): print('passed')\nd = D()"), WRONG),
    Forgery("closing_all_files", in_call("import os; os.closerange(0, 64)"), f"{WRONG}|{ENDED}"),
    Forgery(
        "its_pipes_blocked",
        in_call(
            "import os\nfor n in range(3, 2000):\n    try: os.set_blocking(n, False)\n    except OSError: pass"
        ),
        f"{WRONG}|{ENDED}",
    ),
    Forgery("no_function", "x = 1", "not define the function add"),
    Forgery("no_python", "def add(a, b:", "SyntaxError"),
]

READING = [
    Forgery(
        "frames",
        in_call(
            "frame = sys._getframe()\nwhile frame: tell(frame.f_locals); tell(frame.f_globals); frame = frame.f_back",
            f"import sys\n{SEARCH}",
        ),
        WRONG,
    ),
    Forgery(
        "all_objects",
        in_call(
            "for each in gc.get_objects():\n    if type(each) in (dict, list, tuple): tell([v for v in (each.values() if type(each) is dict else each) if type(v) is str])",
            f"import gc\n{SEARCH}",
        ),
        WRONG,
    ),
    Forgery(
        "its_own_files",
        in_call(
            "for root, _, names in os.walk('/sandbox'):\n    for n in names: tell(open(os.path.join(root, n)).read())",
            f"import os\n{SEARCH}",
        ),
        WRONG,
    ),
    Forgery(
        "the_benchmark_in_packages",
        in_call(
            "for folder in sys.path:\n    for root, _, names in os.walk(folder):\n        if 'HumanEval.jsonl.gz' in names: print('ESCAPED')",
            "import os, sys",
        ),
        WRONG,
    ),
    Forgery(
        "the_memory_of_the_process",
        in_call("print('ESCAPED', open('/proc/self/mem', 'rb'))"),
        "FileNotFoundError",
    ),
    Forgery("other_processes", in_call("import os\nif os.path.exists('/proc/1'): print('ESCAPED')"), WRONG),
    Forgery(
        "a_link_to_other_files",
        in_call("import os\nos.symlink('/etc/passwd', '/tmp/p')\nprint('ESCAPED', open('/tmp/p').read())"),
        "FileNotFoundError",
    ),
    Forgery(
        "the_environment",
        in_call(
            "import os\nif set(os.environ) - {'PATH', 'HOME', 'LANG', 'PWD', 'PYTHONHASHSEED', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'LC_CTYPE'}: print('ESCAPED', dict(os.environ))"
        ),
        WRONG,
    ),
    Forgery(
        "what_is_left_of_earlier_programs",
        in_call(
            "import os\nif 'left' in os.listdir('/tmp'): print('ESCAPED')\nopen('/tmp/left', 'w').write('x')"
        ),
        WRONG,
    ),
]

KERNEL = [
    Forgery("tracing_another_process", in_call("if libc.ptrace(16, 1, 0, 0) == 0: print('ESCAPED')", LIBC), WRONG),
    Forgery("reading_another_process", in_call("if libc.process_vm_readv(1, None, 0, None, 0, 0) == 0: print('ESCAPED')", LIBC), WRONG),
    Forgery("a_namespace_of_its_own", in_call("if libc.unshare(0x10000000) == 0: print('ESCAPED')", LIBC), WRONG),
    Forgery("mounting", in_call("if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0: print('ESCAPED')", LIBC), WRONG),
    Forgery("a_file_in_memory", in_call("import os; os.memfd_create('x'); print('ESCAPED')"), RAISED),
    Forgery("more_processor_time", in_call("import resource; resource.setrlimit(resource.RLIMIT_CPU, (9, 9)); print('ESCAPED')"), RAISED),
    Forgery("more_memory", in_call("import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); print('ESCAPED')"), RAISED),
    Forgery("another_user", in_call("import os; os.setuid(0); print('ESCAPED')"), RAISED),
    Forgery("its_own_program_on_disk", in_call("open('/sandbox/harness.py', 'w'); print('ESCAPED')"), RAISED),
    Forgery("its_own_code_on_disk", in_call("open('/sandbox/code.py', 'w'); print('ESCAPED')"), RAISED),
    Forgery("the_packages_on_disk", in_call("import numpy; open(numpy.__file__, 'w'); print('ESCAPED')"), RAISED),
    Forgery("a_new_package", in_call("import sys; open(sys.path[-1] + '/own.py', 'w'); print('ESCAPED')"), RAISED),
    Forgery("shared_memory", in_call("open('/dev/shm/x', 'w'); print('ESCAPED')"), RAISED),
    Forgery("a_device", in_call("open('/dev/kmsg', 'w'); print('ESCAPED')"), RAISED),
    Forgery("a_socket_to_the_world", in_call("import socket; socket.create_connection(('192.0.2.1', 80), 1); print('ESCAPED')"), RAISED),
    Forgery("a_unix_socket", in_call("import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0dbus'); print('ESCAPED')"), RAISED),
    Forgery(
        "descriptors_of_another_process",
        in_call("handle = libc.syscall(434, 1, 0)\nfor n in range(64):\n    if libc.syscall(438, handle, n, 0) >= 0: print('ESCAPED', n)", LIBC),
        WRONG,
    ),
    Forgery("a_handle_of_another_process", in_call("import os; os.pidfd_open(1); print('ESCAPED')"), RAISED),
    Forgery(
        "comparing_with_another_process",
        in_call("import os\nif libc.syscall({'x86_64': 312, 'aarch64': 272}[os.uname().machine], 1, os.getpid(), 0, 0, 1) >= 0: print('ESCAPED')", LIBC),
        WRONG,
    ),
    Forgery(
        "a_socket_to_the_host_s_machine",
        in_call("import socket; s = socket.socket(socket.AF_VSOCK); s.bind((-1, 9999)); s.listen(); print('ESCAPED')"),
        RAISED,
    ),
    Forgery(
        "sockets_of_every_family",
        in_call("for family in range(64):\n    for kind in (1, 2, 3, 5):\n        if libc.socket(family, kind, 0) >= 0: print('ESCAPED', family, kind)", LIBC),
        WRONG,
    ),
    Forgery(
        "limits_of_another_process",
        in_call("import resource; resource.prlimit(1, resource.RLIMIT_NOFILE); print('ESCAPED')"),
        RAISED,
    ),
    Forgery("resolving_a_name", in_call("import socket; socket.getaddrinfo('example.org', 80); print('ESCAPED')"), "gaierror"),
]  # fmt: skip

EXHAUSTING = [
    Forgery("a_fork_bomb", in_call("import os\nwhile True: os.fork()"), RAISED),
    Forgery("a_child", in_call("import subprocess; subprocess.run(['/bin/true']); print('ESCAPED')"), RAISED),
    Forgery(
        "a_child_by_multiprocessing",
        in_call("import multiprocessing as m; m.Process(target=print).start(); print('ESCAPED')"),
        RAISED,
    ),
    Forgery(
        "a_thread_bomb",
        in_call("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,)).start()"),
        f"{RAISED}|{SLOW}|{ENDED}",
    ),
    Forgery("memory", in_call("x = 'x' * (1 << 31)"), "MemoryError"),
    Forgery("memory_by_mmap", in_call("import mmap; mmap.mmap(-1, 1 << 31); print('ESCAPED')"), RAISED),
    Forgery("memory_bit_by_bit", in_call("x = []\nwhile True: x.append(bytearray(1 << 20))"), "MemoryError"),
    Forgery("deep_recursion", returns("add(a, b)"), "RecursionError"),
    Forgery(
        "recursion_without_a_limit",
        in_call("import sys; sys.setrecursionlimit(10**9)\nreturn add(a, b)"),
        f"{ENDED}|RecursionError|MemoryError|{SLOW}",
    ),
    Forgery("an_endless_loop", in_call("while True: pass"), SLOW),
    Forgery("an_endless_loop_while_loading", "while True: pass", SLOW),
    Forgery(
        "a_loop_that_ignores_signals",
        in_call("import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"),
        SLOW,
    ),
    Forgery(
        "a_loop_in_a_thread",
        in_call("import threading; threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()"),
        WRONG,
    ),
    Forgery("sleeping_for_ever", in_call("import time; time.sleep(99)"), SLOW),
    Forgery("an_endless_list", returns("list(__import__('itertools').count())"), f"MemoryError|{SLOW}"),
    Forgery("a_slow_pattern", in_call("import re; re.match('(a+)+b', 'a' * 60)"), SLOW),
    Forgery("huge_output", in_call("for _ in range(200): print('x' * 100_000)"), WRONG),
    Forgery("a_huge_file", in_call("open('/tmp/x', 'wb').write(b'x' * (1 << 26))"), RAISED),
    Forgery(
        "many_files", in_call("import os\nfor n in range(10_000): os.open(f'/tmp/{n}', os.O_CREAT)"), RAISED
    ),
]

FORGERIES = [*LEAVING, *LYING_RESULTS, *PATCHING, *READING, *KERNEL, *EXHAUSTING]
