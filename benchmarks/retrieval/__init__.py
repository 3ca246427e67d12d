"""What is found: labelled questions over made-up memories, and how many of their answers each way of searching gives among its first hits."""
