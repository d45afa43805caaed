"""What the planar rigid-joint examples share: the monolithic reference, errors of a run, and pictures."""
