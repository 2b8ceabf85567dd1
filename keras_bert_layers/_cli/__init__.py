"""What the command line does behind its parser."""
