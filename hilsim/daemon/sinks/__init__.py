"""What follows the stream while packets flow: each sink on a queue and a thread of its own."""
