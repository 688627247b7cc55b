"""Reports on a whole store: made once (`make.report`), told as JSON for programs and as one HTML page for people."""
