"""Read and edit text files: the only code that parses Markdown, front matter, JSON text and elements.

read          bounded reading of regular files: read_bytes, read_if_exists, read_text, decode,
              open_to_read; inside a project: read_inside, require_inside, is_inside, locate_inside.
              Errors: Unreadable, Missing, Malformed (with `line`). Object: a dict with line numbers
files         Change and write_change (replace a file in one step), current_content, follow_link,
              require_writable; TextFile and open_text (edit a text, keep its other bytes)
front_matter  split_front_matter, front_matter_lines (to edit single lines), line_value,
              load_yaml, scalar_value
markdown      prose (lines outside of fences and comments), hidden_at, headings, heading_of, item_of,
              opening_fence, closes_fence, split_lines, line_end, newline_of, escape_markdown;
              quotations and QUOTED (quoted texts in a check)
elements      elements, opening_tag, attributes_of, escape, unescape, without_cdata, blank_comments
json_text     read_object (strict, with lines); edit in place: root, find, put, put_text, append, drop
journal_text  redact_and_truncate, redact_or_reject; read_option (text of an option, a file or stdin)
shape         SHAPE.md: criteria, must-nots and verification commands of a goal
shell         masking_part (the part of a shell command that masks its exit code); tokens, piece_end,
              closing_end (the words of a command, and the parts of a word)
"""
