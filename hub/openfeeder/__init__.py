"""What is served by OpenFeeder: pages as readers get them, and who reads."""
