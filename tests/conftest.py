"""Its presence puts this folder on the import path, so that tests share helpers such as eventually.py."""
