"""Rules for Velodyne streams, one module for each topic, with a class that judges blocks of packets and then the whole stream."""
