"""Pictures from plain data: coupling diagrams, sparklines, pages for notebooks. Knows no systems or results."""
