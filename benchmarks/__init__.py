"""What a crawl costs on this machine, each as one command and one table: `python -m benchmarks.makespan` and so on."""
