"""Reports on a whole store: `make.make_report` makes one, as JSON for programs or as one HTML page for people."""
