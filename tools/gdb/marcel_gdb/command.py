"""What all commands have in common."""

import gdb

NOTHING = "nothing to look at: start the program, attach to it, or load its core file"
OF_ANOTHER = " The library is of another version than marcel.py."


class Command(gdb.Command):
    """One of `marcel`. What run() cannot read it says."""

    name = ""
    kind = gdb.COMMAND_STATUS
    needs_process = True

    def __init__(self):
        super().__init__(f"marcel {self.name}", self.kind)

    def invoke(self, argument, from_tty):
        if self.needs_process:
            self.check_process()
        try:
            self.run(argument.strip())
        except gdb.MemoryError as error:
            raise gdb.GdbError(f"{error}: is the process still there?") from error
        except gdb.error as error:
            text = str(error)
            if "no member" in text:
                text += OF_ANOTHER
            raise gdb.GdbError(text) from error

    @staticmethod
    def check_process():
        thread = gdb.selected_thread()
        if thread is None:
            raise gdb.GdbError(NOTHING)
        if thread.is_running():
            raise gdb.GdbError("the process runs: interrupt it first")

    def run(self, argument):
        raise NotImplementedError
