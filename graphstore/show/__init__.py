"""Values as text, Markdown, HTML and SVG. It reads no store; it shows what it is given."""
