"""What every room uses: arrays, checks of what users give, plain files, small matrix products."""
