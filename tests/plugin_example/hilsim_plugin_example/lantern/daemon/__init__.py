"""What programs are served."""
