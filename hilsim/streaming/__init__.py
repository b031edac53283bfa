"""The thread that renders a sensor's packets ahead of their deadlines, into the rings they are sent from."""
