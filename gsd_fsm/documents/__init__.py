"""Read and edit text files: the only code that parses Markdown, front matter, JSON text and elements."""
