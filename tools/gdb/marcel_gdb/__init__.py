"""What tools/gdb/marcel.py is made of. Reads memory, never calls into it."""
