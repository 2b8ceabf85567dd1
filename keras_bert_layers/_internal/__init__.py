"""What every other module may use and no user sees."""
