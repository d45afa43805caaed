"""How good a run is: its error bar, growth while it goes on, trial runs, and method and step from a tolerance."""
