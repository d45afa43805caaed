"""The Python engine: subsystems called one by one from Python, every failure a sentence."""
