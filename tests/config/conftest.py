"""Paths of the four settings files."""

from tests.support import settings_files as files

user_path, project_path, refusal = files.user_path, files.project_path, files.refusal
foreign_path, markdown_path = files.foreign_path, files.markdown_path
