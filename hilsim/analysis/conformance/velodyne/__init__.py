"""One file a topic: its rules, and a class that looks at blocks of packets and concludes."""
