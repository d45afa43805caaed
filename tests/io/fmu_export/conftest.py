collect_ignore_glob = ["files/*"]  # models that travel in FMUs, and the script that runs them elsewhere
