"""What every package uses: arrays, checks of what users give, plain files, small matrix products."""
