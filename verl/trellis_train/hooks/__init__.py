"""What the trainers tell the platform, and how they are asked to stop."""
